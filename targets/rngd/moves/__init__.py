"""Moves that need no model: whole kernels put together from choices, and changes of one choice."""
