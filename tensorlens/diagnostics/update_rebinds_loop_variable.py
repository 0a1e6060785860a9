"""A loop over parameters assigned the updated values to its own variable, and the parameters stayed as they were.

`p = p - lr * p.grad` computes new values and lets the name `p` refer to them. The parameter itself is another object
and is not touched, and the next round of the loop forgets the new tensor. An update has to write into the parameter.

## Fails

```python
import torch

model = torch.nn.Linear(1, 1, bias=False)  # leaf_made_here
model(torch.ones(1, 1)).sum().backward()
before = model.weight.item()
with torch.no_grad():
    for parameter in model.parameters():
        parameter = parameter - 0.1 * parameter.grad  # replaced_here
print(model.weight.item() - before)  # observed_here
```

## Fixed

```python
import torch

model = torch.nn.Linear(1, 1, bias=False)
model(torch.ones(1, 1)).sum().backward()
before = model.weight.item()
with torch.no_grad():
    for parameter in model.parameters():
        parameter -= 0.1 * parameter.grad
print(model.weight.item() - before)
```
"""
