import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint


class Listing(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def listed(what, run):
    with Listing() as listing:
        try:
            run()
        except RuntimeError as error:
            print(type(error).__name__, str(error)[:60])
    print(what, listing.names)


def leaf():
    return torch.tensor([0.5, -1.5, 2.0], requires_grad=True)


a = leaf()
product = a * a
a.untyped_storage().fill_(0)
listed("memory changed past its version", lambda: product.sum().backward())

b = leaf()
product = b * b
b.data.zero_()
listed("through .data", lambda: product.sum().backward())

c = leaf()
product = c.exp()
product.mul_(2)
listed("a saved tensor was changed", lambda: product.sum().backward())

d = leaf()
listed("the square root of zero", lambda: (d * 0).sqrt().sum().backward())
print(d.grad)

e = leaf()
count = iter(range(2))
listed("a checkpoint", lambda: checkpoint(lambda x: (x + next(count)).exp(), e, use_reentrant=False).sum().backward())

f = leaf()
other = torch.ones(3)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    product = f * other
other.add_(1)
listed("hooks that pack nothing", lambda: product.sum().backward())

g = leaf()
product = g * g
g.data = torch.ones(3)
listed("other memory", lambda: product.sum().backward())

with torch.autograd.set_detect_anomaly(True, check_nan=True):
    h = leaf()
    listed("anomaly mode", lambda: (h * 0).pow(0.5).mul(0).sum().backward())
