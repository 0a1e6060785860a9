"""A tensor made by `detach()` was changed in place, and the tensor that it came from changed with it.

`detach()` takes a tensor out of the graph. It does not copy: both names stand for the same memory, so a change through
one is a change of the other. A snapshot that shall stay as it is needs a copy.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
snapshot = weight.detach()  # shared_here
snapshot.zero_()  # modified_here
print(weight)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
snapshot = weight.detach().clone()
snapshot.zero_()
print(weight)
```
"""
