"""An optimizer made a step, but no backward pass had computed a gradient.

The usual cause is `loss.backward` without parentheses: it names the method and does not call it, and Python has nothing
to object to. A backward call that was deleted, or that stands behind a condition, does the same. The optimizer skips
every parameter that has no gradient, so nothing moves.

## Fails

```python
import torch

weight = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
loss = weight.square().sum()
loss.backward  # rejected_here
optimizer.step()
print(weight)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
loss = weight.square().sum()
loss.backward()
optimizer.step()
print(weight)
```
"""
