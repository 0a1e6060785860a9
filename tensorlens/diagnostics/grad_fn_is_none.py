"""The program walked along `grad_fn` and came to a tensor that has none.

A leaf and a tensor without history have no node that made them: their `grad_fn` is None. Code that walks the graph has
to stop there, or the history was lost at an earlier line.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = (weight * 2).detach()  # graph_cut_here
print(hidden.grad_fn.next_functions)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
print(hidden.grad_fn.next_functions)
```
"""
