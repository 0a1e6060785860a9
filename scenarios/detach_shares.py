"""detach() copies nothing

The detached tensor stands at its source's address: same shape, same strides, same storage, no copy. They share the
version counter as well, so a graph that saved the one notices a write to the other.

Article: The difference between tensor.detach() and tensor.data (in Chinese), part 1
"""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x.detach()
print(y, y.requires_grad)
#: [003-1] holds: y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
#: not y.requires_grad and y.shape == x.shape and y.dtype == x.dtype

weight = torch.ones(3, requires_grad=True)
out = weight * y  # keeps y: it is the gradient of weight
with torch.no_grad():
    x.add_(1)
#: y.tolist() == [2.0, 3.0, 4.0]
#: y._version == x._version == 1

try:
    out.sum().backward()
    outcome = "backward ran"
except RuntimeError as error:
    outcome = str(error)
print(outcome)
#: [000-3] holds if backward reads an overwritten value: "modified by an inplace operation" in outcome
