"""A leaf was given memory of another shape through `.data` between forward and backward.

The graph was recorded with the old shape, so the gradient has that one; the leaf has the new one by then. Nothing
checks it, and the optimizer fails or broadcasts one against the other.

## Fails

```python
import torch

weight = torch.ones(2, requires_grad=True)
loss = (weight * 3).sum()  # graph_built_here
weight.data = torch.ones(3)  # modified_here
loss.backward()  # needed_here
print(weight.shape, weight.grad.shape)  # observed_here
```

## Fixed

```python
import torch

weight = torch.ones(2, requires_grad=True)
loss = (weight * 3).sum()
loss.backward()
print(weight.shape, weight.grad.shape)
weight = torch.ones(3, requires_grad=True)
```
"""
