import torch
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)
        made.inner = inner.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func)
        unwrap = lambda x: x.inner if isinstance(x, cls) else x
        wrap = lambda x: cls(x) if isinstance(x, torch.Tensor) else x
        result = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
        return args[0] if func.__name__.partition(".")[0].endswith("_") else tree_map(wrap, result)

    def __repr__(self):
        return f"Wrapper({self.inner})"


def attempt(what, run):
    print("--", what)
    try:
        run()
    except RuntimeError as error:
        print(type(error).__name__, str(error)[:60])


def leaf():
    return Wrapper(torch.tensor([0.0, -1.5, 2.0], requires_grad=True))


a = leaf()
attempt("twice", lambda: [(a * a).sum().backward() for _ in range(2)])

b = leaf()
product = b.exp()
product.mul_(2)
attempt("a saved tensor was changed", lambda: product.sum().backward())

c = leaf()
other = Wrapper(torch.ones(3))
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    product = c * other
attempt("changed in place", lambda: other.add_(1))
attempt("hooks that pack nothing", lambda: product.sum().backward())

d = leaf()
product = d * other
attempt("through .data", lambda: other.data.zero_())
attempt("then backward", lambda: product.sum().backward())

e = leaf()
count = iter(range(2))
attempt("a checkpoint", lambda: checkpoint(lambda x: (x + next(count)).exp(), e, use_reentrant=False).sum().backward())

f = leaf()
attempt("the square root of zero", lambda: (f * 0).sqrt().sum().backward())
print(f.grad)

g = leaf()
attempt("other memory", lambda: setattr(g, "data", Wrapper(torch.ones(3))))
attempt("then backward", lambda: (g * g).sum().backward())

with torch.autograd.set_detect_anomaly(True):
    h = leaf()
    attempt("anomaly mode", lambda: (h * 0).pow(0.5).mul(0).sum().backward())
