"""What is believed about a target, and how each belief was checked."""
