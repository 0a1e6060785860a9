"""The target of a loss was computed from the parameters that are trained, and gradients went through it.

A value that the prediction shall move towards is meant to stand still: the estimate of the next state, the output of a
teacher, a label made by the model. Without `detach()` the gradient moves the target as well, towards the prediction.

## Fails

```python
import torch

weight = torch.tensor(2.0, requires_grad=True)  # leaf_made_here
loss = (weight * 1.0 - (1.0 + 0.9 * weight * 3.0)) ** 2  # graph_built_here
loss.backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor(2.0, requires_grad=True)
loss = (weight * 1.0 - (1.0 + 0.9 * weight * 3.0).detach()) ** 2
loss.backward()
print(weight.grad)
```
"""
