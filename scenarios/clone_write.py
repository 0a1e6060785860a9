"""Writing a clone

The clone's values are its own, so writing them leaves the source as it was. That is all it separates: backward through
the clone of a tensor that requires grad reaches the source. A clone costs a copy, as a deep copy does; only of a view
into a larger storage does a deep copy take more, since it copies that storage whole.

Article: 002, part 1
"""

import copy

import torch

torch.manual_seed(0)
x = torch.rand(2, 3)
y = x.clone()
y[0, 0] = 0.5
print(x, y, sep="\n")
#: [002-1] holds if the source does not require grad: x[0, 0] != 0.5 and y[0, 0] == 0.5 and y.grad_fn is None


def different(one, other):
    names = "shape dtype device layout requires_grad is_leaf grad_fn".split()
    return [name for name in names if getattr(one, name) != getattr(other, name)]


#: [002-3] holds if the source does not require grad: different(y, x) == []

w = torch.rand(2, 3, requires_grad=True)
z = w.clone()
#: [002-3] refuted if the source requires grad: different(z, w) == []
z.sum().backward()
#: [002-1] refuted if the source requires grad: w.grad is None

full = copy.deepcopy(x)
#: [002-2] refuted if the source fills its storage: y.untyped_storage().nbytes() < full.untyped_storage().nbytes()
part = torch.zeros(1000)[:3]
cloned, full = part.clone(), copy.deepcopy(part)
#: [002-2] holds if the source is a view into a larger storage:
#:     cloned.untyped_storage().nbytes() < full.untyped_storage().nbytes()
