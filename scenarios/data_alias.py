"""Two tensors, one memory

`.data` makes another tensor object on the same storage: what is written through one is read through the other. Told to
require grad, the alias is a leaf that collects a gradient of its own.

Article: The difference between requires_grad_(), detach() and torch.no_grad() (in Chinese), part 2
"""

import torch

a = torch.tensor([1.0, 2.0])
b = a.data
#: [001-1] holds: b is not a and b.data_ptr() == a.data_ptr()
#: [000-8] holds: b is not a and b.untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
#: a.grad is None and b.grad is None

b[0] = 5.0
print(a, b)
#: [001-1] holds: a.tolist() == [5.0, 2.0] and b.tolist() == [5.0, 2.0]

b.requires_grad = True
(b * 3).sum().backward()
#: [000-10] refuted: b.grad is None
#: b.grad.tolist() == [3.0, 3.0] and a.grad is None
