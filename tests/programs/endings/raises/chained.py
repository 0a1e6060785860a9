# ended with ValueError, exit code 1
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError as error:
    raise ValueError('shapes') from error
