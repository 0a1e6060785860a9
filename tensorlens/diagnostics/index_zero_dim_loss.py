"""A tensor that is a single number was indexed.

In very old code a loss had one dimension and its value was read as `loss.data[0]`. Today a loss has none: there is no
first element to take, and the value is read with `item()`.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = weight.square().sum()  # value_made_here
print(loss.data[0])  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = weight.square().sum()
print(loss.item())
```
"""
