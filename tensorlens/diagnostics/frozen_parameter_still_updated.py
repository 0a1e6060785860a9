"""A parameter was frozen by `requires_grad = False`, and the optimizer went on changing it.

The flag stops new gradients. A gradient that is already stored in `.grad` stays there, and the optimizer uses whatever
it finds; momentum and weight decay move a parameter as well. To leave a parameter alone its gradient has to go too.

## Fails

```python
import torch

layer = torch.nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(1, 1)).sum().backward()  # accumulated_here
layer.weight.requires_grad_(False)  # flag_changed_here
before = layer.weight.clone()
optimizer.step()  # needed_here
print(torch.equal(before, layer.weight))  # observed_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(1, 1)).sum().backward()
layer.weight.requires_grad_(False)
layer.weight.grad = None
before = layer.weight.clone()
optimizer.step()
print(torch.equal(before, layer.weight))
```
"""
