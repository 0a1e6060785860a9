"""What the lens costs, beside what else one could use. `make bench` runs it and writes docs/benchmarks.md."""
