"""The legality rules: from a syntax tree to the typed program, or to the first error."""
