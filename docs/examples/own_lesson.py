"""A detached tensor shares memory"""

import torch

a = torch.ones(3, requires_grad=True)
b = a.detach()
#: b.data_ptr() == a.data_ptr()
#: refuted: b.requires_grad
b[0] = 5.0
(a * b).sum().backward()
#: a.grad.tolist() == [1.0, 1.0, 1.0]
