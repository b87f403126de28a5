"""A small open NPU: its language, compiler, interpreter, and what a program costs on it."""
