"""The simulated world: an accelerator whose truth is known, its noise, and virtual time."""
