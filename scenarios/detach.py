"""detach(): the same memory, outside the graph

A detached tensor is a second tensor on its source's memory that the graph knows nothing of. Gradients go to the source
only, until the detached tensor is made to require grad: then it is a leaf of its own and collects its own gradient.
The last backward runs on a graph that holds nothing to differentiate, and the script ends in PyTorch's error.

Article: detach, data, clone and copy_ compared (in Chinese), part 1

The saved article lost the multiplication signs of `d = b * 4 + a` and `d = b * 4`; they are back in place here.
"""

import torch

a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = a.detach()
#: [000-1] holds: b is not a and b.shape == a.shape and b.dtype == a.dtype and b.device == a.device
#: [000-2] holds: b.data_ptr() == a.data_ptr()
#: [000-4] holds: not b.requires_grad and b.grad_fn is None

c = a * 2
c.sum().backward()
#: a.grad.tolist() == [2.0, 2.0, 2.0]
#: b.grad is None

d = b * 4 + a  # b is a constant here
d.sum().backward()
#: a.grad.tolist() == [3.0, 3.0, 3.0]
#: b.grad is None

b.requires_grad = True
d = b * 4
d.sum().backward()
print("b.grad", b.grad)
#: [000-5] refuted: b.grad is None
#: b.grad.tolist() == [4.0, 4.0, 4.0]
#: [000-6] holds: b.is_leaf and a.grad.tolist() == [3.0, 3.0, 3.0]

b.requires_grad = False
d = b * 4
#: not d.requires_grad and d.grad_fn is None
d.sum().backward()
#: raises RuntimeError: does not require grad and does not have a grad_fn
