"""An optimizer was made without any parameter to optimize.

A module finds its parameters in attributes that are a `Parameter` or a `Module`. Layers in a plain list or dictionary,
and plain tensors, are not among them. Other causes are a filter that leaves nothing and a generator such as
`model.parameters()` that was already used up by an earlier loop.

## Fails

```python
import torch


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [torch.nn.Linear(3, 3) for _ in range(2)]  # value_made_here


optimizer = torch.optim.SGD(Stack().parameters(), lr=0.1)  # optimizer_made_here
```

## Fixed

```python
import torch


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(2))


optimizer = torch.optim.SGD(Stack().parameters(), lr=0.1)
```
"""
