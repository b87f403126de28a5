"""FuriosaAI's RNGD, through the vendor's own language, compiler and functional runtime."""
