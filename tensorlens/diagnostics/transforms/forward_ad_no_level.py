"""A dual tensor was made outside of a `dual_level` block.

Forward differentiation carries a tangent along with each value, and the block says how long these tangents live.

## Fails

```python
import torch
import torch.autograd.forward_ad as forward_ad

dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))  # rejected_here
```

## Fixed

```python
import torch
import torch.autograd.forward_ad as forward_ad

with forward_ad.dual_level():
    dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "forward-ad-no-level",
    ("rejected_here",),
    "a dual tensor was made outside of a `dual_level` block",
    "forward differentiation needs the block: it says how long tangents live",
    "put the computation into `with forward_ad.dual_level():`",
)
