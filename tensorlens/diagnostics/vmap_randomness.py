"""A random operation was called inside `vmap`, which was not told how to treat it.

Each sample may get random numbers of its own, or all may get the same; the one is right for noise, the other for a
shared mask.

## Fails

```python
import torch


def jitter(value):
    return value + torch.rand(2)  # rejected_here


torch.vmap(jitter)(torch.ones(3, 2))  # mode_entered_here
```

## Fixed

```python
import torch


def jitter(value):
    return value + torch.rand(2)


torch.vmap(jitter, randomness="different")(torch.ones(3, 2))
```
"""
