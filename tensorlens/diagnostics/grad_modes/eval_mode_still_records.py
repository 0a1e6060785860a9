"""`model.eval()` was called and gradients are still being recorded.

`eval()` changes how some layers behave: dropout stops dropping, batch norm uses its running averages. It says nothing
about autograd. Operations are recorded and tensors are saved until recording is switched off by `no_grad` or
`inference_mode`.

## Fails

```python
import torch

model = torch.nn.Linear(2, 1)
model.eval()  # mode_entered_here
output = model(torch.ones(1, 2))  # graph_built_here
print(output.requires_grad)  # observed_here
```

## Fixed

```python
import torch

model = torch.nn.Linear(2, 1)
model.eval()
with torch.no_grad():
    output = model(torch.ones(1, 2))
print(output.requires_grad)
```
"""
