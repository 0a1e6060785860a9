"""Backward ran again and again, and each time added its gradient to the one that was there already.

Backward adds to `.grad` and does not replace it. That is what lets a large batch be split into parts; in a training
loop that never resets the gradients, every step uses the sum of all the gradients so far. The loss often still goes
down for a while, which is why this goes unnoticed.

## Fails

```python
import torch

weight = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(3):
    loss = (weight * 2).sum()
    loss.backward()  # accumulated_here
    optimizer.step()
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = (weight * 2).sum()
    loss.backward()
    optimizer.step()
print(weight.grad)
```
"""
