"""The machine's own processor: kernels in C for one core, real timings, real noise."""
