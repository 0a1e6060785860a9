"""Hooks for saved tensors were used where they are not allowed.

Offloading to the CPU, compression of activations and checkpoints of the new kind all work by such hooks. A transform of
`torch.func` does not support them inside, and a library may have switched them off.

## Fails

```python
import torch


def energy(value):
    with torch.autograd.graph.save_on_cpu():  # rejected_here
        return value.cos().sum()


torch.func.grad(energy)(torch.ones(2))  # mode_entered_here
```

## Fixed

```python
import torch


def energy(value):
    return value.cos().sum()


torch.func.grad(energy)(torch.ones(2))
```
"""
