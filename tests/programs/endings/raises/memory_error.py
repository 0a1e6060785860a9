# ended with MemoryError, exit code 1
bytes(1 << 60)
