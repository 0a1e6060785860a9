import torch
from torch.utils._python_dispatch import TorchDispatchMode

class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func, len(args))
        return func(*args, **(kwargs or {}))

x = torch.ones(3, requires_grad=True)
with Log():
    y = (x * 2).exp()
    y.add_(1)
    z = y.detach()
    z.view(3, 1)
    (x * x).sum().backward()
    p = torch.nn.Parameter(torch.zeros(2))
    torch.nn.Linear(2, 1)(p)
print(x.grad, y._version)
