"""clone(): memory of its own, still in the graph

A clone holds its own copy of the values and stays differentiable: what flows back into it flows on to its source. It is
no leaf, so its `.grad` stays empty (and reading it warns) unless it is asked to retain its gradient.

Article: detach, data, clone and copy_ compared (in Chinese), part 2
"""

import warnings

import torch

a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = a.clone()
#: [000-11] holds: b.shape == a.shape and b.dtype == a.dtype and b.device == a.device
#: [000-11] holds: b.data_ptr() != a.data_ptr()
#: a.is_leaf and not b.is_leaf and b.grad_fn.name() == "CloneBackward0"

c = a * 2
c.sum().backward()
#: [000-22] holds: a.grad.tolist() == [2.0, 2.0, 2.0]

d = b * 3
d.sum().backward()
#: [000-12] holds: a.grad.tolist() == [5.0, 5.0, 5.0]
#: [000-22] holds: a.grad.tolist() == [5.0, 5.0, 5.0]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    grad = b.grad
#: [000-20] holds if `retain_grad()` was not called: grad is None and "not a leaf" in str(caught[0].message)

b.retain_grad()
d = b * 3
d.sum().backward()
print("a.grad", a.grad)
print("b.grad", b.grad)
#: [000-21] holds: b.grad.tolist() == [3.0, 3.0, 3.0]
#: [000-22] holds: a.grad.tolist() == [8.0, 8.0, 8.0]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    grad = b.grad
#: [000-20] refuted if `retain_grad()` was called: grad is None and len(caught) == 1
