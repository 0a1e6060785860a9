"""A second level of forward-mode differentiation was entered inside the first.

`torch.autograd.forward_ad.dual_level()` knows one level at a time. Derivatives of derivatives in forward mode need the
transforms of `torch.func`, whose levels nest.

## Fails

```python
import torch
import torch.autograd.forward_ad as forward_ad

with forward_ad.dual_level():  # mode_entered_here
    moving = forward_ad.make_dual(torch.ones(2), torch.ones(2))
    with forward_ad.dual_level():  # rejected_here
        moving.sin()
```

## Fixed

```python
import torch


def speed(position):
    return torch.func.jvp(torch.sin, (position,), (torch.ones(2),))[1]


torch.func.jvp(speed, (torch.ones(2),), (torch.ones(2),))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "forward-ad-nested-level",
    ("rejected_here", "mode_entered_here"),
    "a level of forward mode was entered while another was open",
    "`dual_level()` keeps one tangent a tensor, so a second level has nowhere to put its own",
    "leave the first level before the second begins",
    "for derivatives of derivatives use `torch.func.jvp` or `torch.func.jacfwd`, which nest",
)
