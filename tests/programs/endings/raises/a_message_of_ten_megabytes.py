# ended with ValueError, exit code 1
raise ValueError("x" * 10_000_000)
