import torch
from torch.overrides import TorchFunctionMode, resolve_name

class Log(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(resolve_name(func) or func.__name__, [t.__name__ for t in types], len(args))
        return func(*args, **(kwargs or {}))

x = torch.ones(3, requires_grad=True)
with Log():
    y = (x * 2).exp()
    y.sum().backward()
    torch.nn.functional.relu(y)
    y[0]
    torch.cat([y, y])
print(x.grad)
