"""Applies operands to fresh tensors and measures the results, for `compare`.

Run as `python -m tensorlens.compare.probe`, this package reads one JSON request from standard input and answers in JSON
lines. Only that child process imports torch. The questions, in `probes`, need no torch.
"""
