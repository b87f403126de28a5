"""Accelerators: one folder each, behind one protocol."""
