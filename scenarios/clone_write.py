"""Writing a clone

The clone's values are its own: writing one of the two leaves the other as it was. That is all it separates: backward
through the clone of a tensor that requires grad reaches the source. A clone costs a copy, as a deep copy does; only of
a view into a larger storage does a deep copy take more, since it copies that storage whole.

Article: clone(), detach() and what belongs with them (in Chinese), part 1
"""

import copy

import torch

torch.manual_seed(0)
x = torch.rand(2, 3)
y = x.clone()
y[0, 0] = 0.5
x[1, 1] = 2.0
print(x, y, sep="\n")
#: [002-1] holds if it is about values: x[0, 0] != 0.5 and y[1, 1] != 2.0


def attributes(t):
    return t.shape, t.stride(), t.dtype, t.device, t.layout, type(t), t.requires_grad, t.is_leaf, t.grad_fn


#: [002-3] holds if the source is dense, no nn.Parameter, and does not require grad: attributes(y) == attributes(x)
columns = torch.zeros(4, 6)[:, ::2]
#: [002-3] refuted if the source is not dense: columns.clone().stride() == columns.stride()
frozen = torch.nn.Parameter(x, requires_grad=False)
#: [002-3] refuted if the source is an nn.Parameter: type(frozen.clone()) is type(frozen)

w = torch.rand(2, 3, requires_grad=True)
with torch.no_grad():
    apart = w.clone().requires_grad_()
apart.sum().backward()
#: [002-1] holds if the clone is not recorded: w.grad is None and apart.grad is not None
z = w.clone()
#: [002-3] refuted if the source requires grad: z.is_leaf == w.is_leaf and z.grad_fn == w.grad_fn
z.sum().backward()
#: [002-1] refuted if it is about gradients and the clone is recorded: w.grad is None

full = copy.deepcopy(x)
#: [002-2] refuted if the source fills its storage: y.untyped_storage().nbytes() < full.untyped_storage().nbytes()
part = torch.zeros(1000)[:3]
cloned, full = part.clone(), copy.deepcopy(part)
#: [002-2] holds if the source is a view into a larger storage:
#:     cloned.untyped_storage().nbytes() < full.untyped_storage().nbytes()
