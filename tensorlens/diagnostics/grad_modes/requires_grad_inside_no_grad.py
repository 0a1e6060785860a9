"""A tensor was made to require grad inside `no_grad`, and what was computed from it there was not recorded.

`requires_grad=True` is a wish that is noted on the tensor. Whether an operation is recorded is decided where it runs:
under `no_grad` it is not, whatever its inputs ask for.

## Fails

```python
import torch

with torch.no_grad():  # grad_mode_off_here
    image = torch.ones(2, requires_grad=True)
    score = image * 2  # graph_cut_here
print(image.requires_grad, score.requires_grad)  # observed_here
```

## Fixed

```python
import torch

with torch.no_grad():
    image = torch.ones(2)
image.requires_grad_()
score = image * 2
print(image.requires_grad, score.requires_grad)
```
"""
