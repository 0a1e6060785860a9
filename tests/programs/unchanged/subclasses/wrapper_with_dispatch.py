import torch
from torch.utils._pytree import tree_map
class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)
        made.inner = inner
        return made
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func)
        unwrap = lambda x: x.inner if isinstance(x, cls) else x
        wrap = lambda x: cls(x) if isinstance(x, torch.Tensor) else x
        return tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))
    def __repr__(self):
        return f"Wrapper({self.inner})"
x = Wrapper(torch.arange(3.0).requires_grad_())
y = x * 2
print(y, type(y).__name__, y.requires_grad)
y.sum().backward()
print(x.grad)
