"""detach_(): leaving the graph in place

The underscore means what it always does: no tensor is made, the tensor itself is changed and returned. Afterwards it
does not require grad, prints like any constant, and may be written freely.

Article: 002, part 4

The article prints `requires_grad=True` after `detach_()` and says that nothing is returned; neither is so.
"""

import torch

torch.manual_seed(0)
x = torch.rand(2, 3, requires_grad=True)
y = torch.ones(2, 3, requires_grad=True)
optimizer = torch.optim.SGD([y], lr=0.1)
(x + y).sum().backward()
optimizer.step()
#: "requires_grad=True" in repr(y)

returned = y.detach_()
print(y)
#: [002-8] holds: returned is y
#: [002-9] refuted: returned is None
#: [000-7] refuted: returned is not y
#: [002-10] refuted: "requires_grad=True" in repr(y)

y[0, 0] = 0.5
#: y[0, 0] == 0.5 and y.grad is not None

out = x.sigmoid()
out.detach_()  # a result leaves the graph it came from, and becomes a leaf
#: out.is_leaf and out.grad_fn is None and not out.requires_grad
