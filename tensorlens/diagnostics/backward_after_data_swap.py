"""A tensor that backward needs was given other memory, of another shape, through `.data`.

Autograd saves the tensor, not its values, and checks its version, which an assignment to `.data` does not raise. So
backward goes on and combines what does not belong together; with another shape it stops in the middle of a formula,
with a message about sizes. With the same shape the gradient would be wrong without a word.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (weight * weight).sum()  # saved_here
weight.data = torch.ones(3)  # modified_here
loss.backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (weight * weight).sum()
loss.backward()
weight = torch.ones(3, requires_grad=True)
```
"""
