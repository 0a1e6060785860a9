import sys, torch
x = torch.ones(2, requires_grad=True)
x.register_hook(lambda g: exit(4))
(x * 2).sum().backward()
