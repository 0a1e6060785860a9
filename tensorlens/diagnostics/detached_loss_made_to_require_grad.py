"""A loss that had lost its history was made to require grad, so backward ran and reached no parameter.

`requires_grad_()` silences the error that backward gives for such a loss. It cannot bring the history back: the loss
becomes a leaf, a beginning, and backward stops right there, at its own `.grad`. What has to be found is the operation
on the way to the loss that dropped the history.

## Fails

```python
import torch

model = torch.nn.Linear(2, 1)
output = model(torch.ones(1, 2)).detach()  # graph_cut_here
loss = output.sum().requires_grad_()  # replaced_here
loss.backward()  # needed_here
print(model.weight.grad)  # observed_here
```

## Fixed

```python
import torch

model = torch.nn.Linear(2, 1)
output = model(torch.ones(1, 2))
loss = output.sum()
loss.backward()
print(model.weight.grad)
```
"""
