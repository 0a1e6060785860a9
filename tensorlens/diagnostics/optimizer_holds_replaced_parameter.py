"""A module was given new parameters after the optimizer had been made, and the optimizer updates the old ones.

An optimizer keeps the parameter objects that it was given. A layer that is replaced, or a parameter that is assigned
anew, is another object: it gets gradients and is never updated, while the old one, which nothing uses any more, still
is.

## Fails

```python
import torch

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # optimizer_made_here
model[1] = torch.nn.Linear(2, 3)  # replaced_here
before = model[1].weight.detach().clone()
model(torch.ones(1, 2)).sum().backward()
optimizer.step()  # needed_here
print(torch.equal(before, model[1].weight))  # observed_here
```

## Fixed

```python
import torch

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
model[1] = torch.nn.Linear(2, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = model[1].weight.detach().clone()
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
print(torch.equal(before, model[1].weight))
```
"""
