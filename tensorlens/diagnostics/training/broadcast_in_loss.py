"""A loss compared every prediction with every target, because their shapes were broadcast.

A prediction of shape (N, 1) and a target of shape (N,) fit each other by broadcasting, as an N by N table. The loss is
a number as always, and its gradient draws all predictions towards the mean of the targets. The shapes have to be the
same, not just fit.

## Fails

```python
import torch

prediction = torch.tensor([[0.0], [1.0], [2.0]], requires_grad=True)
target = torch.tensor([0.0, 1.0, 2.0])  # value_made_here
loss = (prediction - target).square().mean()  # graph_built_here
loss.backward()  # needed_here
print(prediction.grad)  # observed_here
```

## Fixed

```python
import torch

prediction = torch.tensor([[0.0], [1.0], [2.0]], requires_grad=True)
target = torch.tensor([0.0, 1.0, 2.0])
loss = (prediction.squeeze(1) - target).square().mean()
loss.backward()
print(prediction.grad)
```
"""
