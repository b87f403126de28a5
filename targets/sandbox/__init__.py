"""Hostile code of any target runs in here, confined by the kernel of the machine."""
