"""The three decode kernels of Gemma-4-12B, as every target has to compute them."""
