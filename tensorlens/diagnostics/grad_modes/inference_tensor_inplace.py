"""A tensor that was made in inference mode was changed in place outside of it.

A tensor made in inference mode has no version counter. A change in place outside the mode would have to raise it, so
that autograd can notice stale values, and there is nothing to raise. Its views and its `detach()` have none either.

## Fails

```python
import torch

with torch.inference_mode():  # mode_entered_here
    average = torch.zeros(3)  # value_made_here
average.add_(1.0)  # rejected_here
```

## Fixed

```python
import torch

with torch.inference_mode():
    average = torch.zeros(3)
average = average.clone()
average.add_(1.0)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "inference-tensor-inplace",
    ("rejected_here", "value_made_here", "mode_entered_here"),
    "{op} would change a tensor that was made in inference mode",
    "such a tensor has no version counter, and a change outside inference mode would have to raise it",
    "take a normal copy first: `.clone()` outside the block",
    "or make it under `torch.no_grad()` in place of inference mode",
)
