"""What `compare` measures, live: operands applied to fresh tensors, and questions asked of the result.

Run as `python -m tensorlens.compare.probe` it reads one JSON request from standard input and answers in JSON
lines; only that child process imports torch. `probes` is the table of questions and can be read without torch.
"""
