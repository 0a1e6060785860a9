"""What .data is, and is not

Each reading of `.data` makes a new tensor on the original's memory. It carries no history and no gradient: writing it
changes the original's values, and nothing computed from it leads back to the original. Told to require grad, it is a
leaf of its own.

Article: The difference between tensor.detach() and tensor.data (in Chinese), part 2
"""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
(x * 2).sum().backward()
y = x.data
print(y, y.requires_grad, y.grad)
#: [000-23] holds: y.shape == x.shape and y.dtype == x.dtype and y.device == x.device
#: [003-1] holds: y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
#: [003-2] refuted: y is x
#: x.data is not x.data
#: [003-5] refuted: y.requires_grad or y.grad is not None
#: x.grad.tolist() == [2.0, 2.0, 2.0]

y.mul_(10)
print(x)
#: [003-3] holds if it works in place: x.tolist() == [10.0, 20.0, 30.0]
bigger = y * 5
#: [003-3] refuted if it makes a new tensor: x.tolist() == bigger.tolist()

out = (x * x.data).sum()  # of the two factors only x is in the graph
x.grad = None
out.backward()
#: x.grad.tolist() == [10.0, 20.0, 30.0]

middle = x * 2
out = middle.data * 3
#: [003-4] refuted: out.requires_grad
#: middle.grad_fn is not None and out.grad_fn is None

y.requires_grad = True
(y * 3).sum().backward()
#: [000-24] holds: y.is_leaf and y.grad.tolist() == [3.0, 3.0, 3.0]
#: [000-24] holds: x.grad.tolist() == [10.0, 20.0, 30.0]
