"""Measures what `--training` reports: the gradients and the values of parameters, and the groups of optimizers."""
