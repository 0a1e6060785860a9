"""Applies operands to fresh tensors and measures the results, for `compare`.

Run as `python -m tensorlens.compare.probe` it reads one JSON request from standard input and answers in JSON lines.
Only that child process imports torch. `probes` is the table of questions, which needs no torch.
"""
