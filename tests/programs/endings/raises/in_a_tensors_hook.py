# ended with RuntimeError, exit code 1
y.register_hook(lambda g: torch.ones(2) @ torch.ones(3))
y.sum().backward()
