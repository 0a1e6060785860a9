"""The plain gradient of a sigmoid

Nothing is detached and nothing is written. Backward fills the leaf's gradient with `out * (1 - out)`, from the values
of `out` that the graph kept. The lessons detach-write and data-write change just those values.

Article: What detach() does to backward, in four examples (in Chinese), part 1
"""

import torch

a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
#: a.grad is None
out = a.sigmoid()
#: out.grad_fn.name() == "SigmoidBackward0"
out.sum().backward()
print("a.grad", a.grad)
#: [004-4] holds: [round(g, 4) for g in a.grad.tolist()] == [0.1779, 0.0313, 0.0037]
#: a.grad.allclose(out * (1 - out))
