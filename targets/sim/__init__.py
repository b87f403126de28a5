"""The simulated NPU as a target."""
