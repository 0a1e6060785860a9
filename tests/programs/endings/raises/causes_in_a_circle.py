# ended with ValueError, exit code 1
first, second = ValueError("first"), KeyError("second")
second.__cause__ = first
raise first from second
