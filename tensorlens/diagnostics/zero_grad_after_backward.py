"""The gradients were reset between backward and the optimizer's step, so the step had nothing to work with.

Each round of training has three parts, in this order: reset the gradients, compute them, use them. A reset after
backward throws away what was just computed; the step then finds None or zeros and changes nothing. No error is raised,
because a parameter without a gradient is normal: a frozen layer has none.

## Fails

```python
import torch

weight = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
weight.square().sum().backward()  # needed_here
optimizer.zero_grad()  # cleared_here
optimizer.step()
print(weight)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
optimizer.zero_grad()
weight.square().sum().backward()
optimizer.step()
print(weight)
```
"""
