"""requires_grad_(): switched on in place

Recording starts on the tensor itself, and the call returns that tensor. A detached alias made later shares the values
and not the gradient. Writing through the alias is harmless to a backward that does not need the old values.

Article: The difference between requires_grad_(), detach() and torch.no_grad() (in Chinese), part 3
"""

import torch

a = torch.tensor([1.0, 2.0])
same = a.requires_grad_()
#: [001-2] holds: same is a and a.requires_grad

c = a.pow(2).sum()
c.backward()
#: a.grad.tolist() == [2.0, 4.0]

b = a.detach()
#: [001-3] holds: b.data_ptr() == a.data_ptr()
#: [001-3] holds: a.grad is not None and b.grad is None
#: not b.requires_grad

d = a * 2  # the gradient is 2 whatever a holds
b[0] = 6.0
print(a, b)
#: a.tolist() == [6.0, 2.0] and b.tolist() == [6.0, 2.0]

a.grad = None
try:
    d.sum().backward()
    outcome = "backward ran"
except RuntimeError as error:
    outcome = str(error)
#: outcome == "backward ran"
#: a.grad.tolist() == [2.0, 2.0]
