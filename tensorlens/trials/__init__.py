"""Runs a program again with a change, and judges what the change does to its gradients."""
