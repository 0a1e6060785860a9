"""Measures the overhead of TensorLens and of its alternatives. `make bench` runs it and writes docs/benchmarks.md."""
