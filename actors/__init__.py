"""Effects: thin shells over plain code, with their ports passed in."""
