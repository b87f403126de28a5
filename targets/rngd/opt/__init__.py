"""RNGD's second language: kernels in Rust for furiosa-opt, timed by the vendor's Arena service."""
