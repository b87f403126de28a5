"""Changes of a kernel's syntax tree, for searches without a model."""
