"""The name of a leaf was given to a tensor computed from it, so the gradient went to a tensor that has no name any
more.

`w = w.to(...)`, `w = w.double()` or `w = w * 0.1` after `requires_grad=True` make a new tensor. Backward goes through
it to the old leaf, which nothing in the program refers to; the `.grad` of the tensor that has the name stays None, and
an update of it is never seen by the leaf.

## Fails

```python
import torch

first = torch.ones(2, requires_grad=True)  # leaf_made_here
weight = first.double()  # nonleaf_made_here
weight.square().sum().backward()  # needed_here
print(first.grad, weight.is_leaf)  # observed_here
```

## Fixed

```python
import torch

weight = torch.ones(2).double().requires_grad_()
weight.square().sum().backward()
print(weight.grad, weight.is_leaf)
```
"""
