"""Pure functions from recorded evidence to a decision with its reasons.

No clock, no I/O, no hidden randomness.
"""
