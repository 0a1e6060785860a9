"""The gradient is zero because it passes through an operation that is flat almost everywhere.

`round`, `floor`, `sign`, a comparison made into a number, and `clamp` outside its range are recorded like any other
operation. But when their input moves a little, their result does not move at all, so their derivative is zero, and so
is every gradient that goes through them. Training runs and nothing is learned.

## Fails

```python
import torch

weight = torch.tensor([0.3, 1.7], requires_grad=True)
loss = (weight.floor() - 4).square().sum()  # graph_built_here
loss.backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([0.3, 1.7], requires_grad=True)
rounded = weight + (weight.floor() - weight).detach()  # floor's value, the identity's gradient
loss = (rounded - 4).square().sum()
loss.backward()
print(weight.grad)
```
"""
