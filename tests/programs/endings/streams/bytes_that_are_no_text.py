# ran to its end, exit code 0
os.write(1, bytes(range(256)) * 100)
os.write(2, bytes(range(256)))
