# ended with BrokenPipeError, exit code 1
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)
print('x' * 100_000, flush=True)
