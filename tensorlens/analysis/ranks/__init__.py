"""Compares the ranks of one distributed run: how each ended, where their lines part, which gradients differ."""
