"""The record: what happened, kept in an append-only log, and the state folded from it."""
