# ended itself, exit code 4
y.register_hook(lambda g: sys.exit(4))
y.sum().backward()
