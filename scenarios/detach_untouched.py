"""A detached tensor that is only looked at

Detaching a result changes nothing about the result: as long as nobody writes to the shared memory, backward through
the original gives the same gradient as ever. Reading the `.grad` of the result, which is no leaf, warns.

Article: What detach() does to backward, in four examples (in Chinese), part 2
"""

import torch

a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
out = a.sigmoid()
print("out.grad", out.grad)
#: not out.is_leaf and out.grad is None

c = out.detach()
print("c", c)
#: [004-1] holds: c.data_ptr() == out.data_ptr() and not c.requires_grad
#: out.requires_grad and out._version == 0

out.sum().backward()
print("a.grad", a.grad)
#: [004-5] holds: [round(g, 4) for g in a.grad.tolist()] == [0.1779, 0.0313, 0.0037]

c.requires_grad = True
(c * 2).sum().backward()
#: [004-2] refuted: c.grad is None
#: c.grad.tolist() == [2.0, 2.0, 2.0]
