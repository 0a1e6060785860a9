"""Writing through .data

Nothing done to `.data` is recorded: no node, no new version. So a backward that needs the overwritten values cannot
know that they are gone, and computes with what it finds. No error says so; the gradient is just wrong. The same write
through `detach()` is noticed, and backward refuses.

Article: clone(), detach() and what belongs with them (in Chinese), part 3
"""

import torch

torch.manual_seed(0)
x = torch.rand(2, 3, requires_grad=True)
y = x.data
y[0, 0] = 0.5
print(x, y, sep="\n")
#: x[0, 0] == 0.5 and y[0, 0] == 0.5
#: [002-7] holds: x.grad_fn is None and x._version == 0
#: [002-7] holds: (y * 2).grad_fn is None

a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
out = a.sigmoid()
right = torch.autograd.grad(out.sum(), a, retain_graph=True)[0]
out.data.zero_()
out.sum().backward()
print(a.grad, "where", right, "is right")
#: [000-9] holds if backward reads an overwritten value: not a.grad.allclose(right)
#: [002-12] holds: a.grad.tolist() == [0.0, 0.0, 0.0] and right.min() > 0

out = a.sigmoid()
out.detach().zero_()
try:
    out.sum().backward()
    outcome = "backward ran"
except RuntimeError as error:
    outcome = str(error)
#: [002-12] holds: "modified by an inplace operation" in outcome

a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
out = a * 2
right = torch.autograd.grad(out.sum(), a, retain_graph=True)[0]
out.data.zero_()
out.sum().backward()
#: [000-9] refuted if backward reads no overwritten value: not a.grad.allclose(right)
