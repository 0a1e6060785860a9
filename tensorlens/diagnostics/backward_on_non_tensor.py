"""`backward` was called on something that is not a tensor: a Python number, a NumPy scalar, None, a tuple or a list.

Only a tensor knows the operations that it came from. `.item()`, `float()` and `.numpy()` hand out the bare value; with
it the way back to the parameters is gone, so there is nothing that backward could be run on. A function that forgot its
`return` gives None; a model that returns its loss together with something else gives a tuple; `sum()` of an empty list
gives the number 0.

## Fails

```python
import torch

weight = torch.tensor([1.0, -2.0], requires_grad=True)
total = weight.square().mean().item()  # value_made_here
total.backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, -2.0], requires_grad=True)
total = weight.square().mean()
total.backward()
print(total.item())
```
"""
