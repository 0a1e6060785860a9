"""A running total of losses keeps the graph of every iteration alive.

Adding a loss to a total is an operation like any other: the total refers to the loss, the loss to its graph, and the
graph to everything that was saved in it. Memory grows with each step until it runs out. For a number to be shown, the
value is enough.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
total = 0.0
for step in range(3):
    loss = (weight * step).exp().sum()  # graph_built_here
    total = total + loss  # shared_here
print(total.grad_fn)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
total = 0.0
for step in range(3):
    loss = (weight * step).exp().sum()
    total = total + loss.item()
print(total)
```
"""
