"""detach_(): leaving the graph in place

The underscore means what it always does: no tensor is made, the tensor itself is changed and returned. Afterwards it
does not require grad and prints like any constant. What happened before is not undone: an optimizer that holds it goes
on applying the gradient that it has, and a graph that saved it refuses to run once it is written. A result that a later
step saved stops backward even if nobody writes it.

Article: clone(), detach() and what belongs with them (in Chinese), part 4

The article prints `requires_grad=True` after `detach_()` and says that nothing is returned; neither is so.
"""

import torch

torch.manual_seed(0)
x = torch.rand(2, 3, requires_grad=True)
y = torch.ones(2, 3, requires_grad=True)
optimizer = torch.optim.SGD([y], lr=0.1)
(x + y).sum().backward()
optimizer.step()
product = (x * y).sum()  # keeps y: it is the gradient of x
#: "requires_grad=True" in repr(y)

returned = y.detach_()
print(y)
#: [002-8] holds: returned is y
#: [002-9] refuted: returned is None
#: [000-7] refuted: returned is not y
#: [002-10] refuted: "requires_grad=True" in repr(y)

optimizer.step()
#: y.allclose(torch.tensor(0.8)) and not y.requires_grad

out = x.sigmoid()
total = out.square().sum()  # keeps out
out.detach_()  # a result leaves the graph it came from, and becomes a leaf
#: out.is_leaf and out.grad_fn is None and not out.requires_grad
refusals = []
for scalar in (product, total):
    try:
        scalar.backward()
    except RuntimeError as error:
        refusals.append(str(error))
#: "modified by an inplace operation" in refusals[0]
#: "detached in-place" in refusals[1]
