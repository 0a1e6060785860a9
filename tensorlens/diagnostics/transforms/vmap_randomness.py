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

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "vmap-randomness",
    ("rejected_here", "mode_entered_here"),
    "{op} draws random numbers inside `torch.vmap`",
    "`torch.vmap` is not told whether all elements of the batch shall get the same numbers or each its own",
    'say so: `torch.vmap(..., randomness="different")` or `"same"`',
    "or draw them outside and pass them in as an argument",
)
