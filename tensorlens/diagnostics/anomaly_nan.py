"""Anomaly mode stopped backward because a backward formula returned a gradient that is not a number.

The forward pass may look healthy. Some formulas have no finite value at the edge of their domain: the slope of a square
root is infinite at 0, that of a logarithm too, and infinity times 0 is NaN. The operation named in the message is the
first one, counted from the loss, whose gradient came out as NaN; the value that it got in the forward pass is what to
look at. Masking the result afterwards does not help, because the NaN arises inside the masked branch.

## Fails

```python
import torch

with torch.autograd.set_detect_anomaly(True):  # mode_entered_here
    distance = torch.tensor([0.0, 4.0], requires_grad=True)  # value_made_here
    length = distance.sqrt()  # graph_built_here
    (length * torch.tensor([0.0, 1.0])).sum().backward()  # needed_here
```

## Fixed

```python
import torch

distance = torch.tensor([0.0, 4.0], requires_grad=True)
length = (distance + 1e-8).sqrt()
(length * torch.tensor([0.0, 1.0])).sum().backward()
```
"""
