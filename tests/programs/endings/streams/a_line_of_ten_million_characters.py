# ran to its end, exit code 0
print('x' * 10_000_000)
