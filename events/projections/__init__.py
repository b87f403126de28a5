"""State folded from the log: each projection changes by `apply` alone."""
