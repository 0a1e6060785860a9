"""A tensor that was made in inference mode was used in an operation that has to save it for backward.

Inference mode gains its speed by keeping no versions: a tensor made there has no counter that would tell whether it was
changed between the forward and the backward pass. Autograd refuses to save such a tensor, because it could not detect a
wrong gradient. Such tensors stay what they are after the block has ended.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.inference_mode():  # mode_entered_here
    features = torch.linspace(0.0, 1.0, 2)  # value_made_here
score = (weight * features).sum()  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    features = torch.linspace(0.0, 1.0, 2)
score = (weight * features).sum()
score.backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "inference-tensor-saved",
    ("rejected_here", "value_made_here", "mode_entered_here"),
    "{op} would have to save a tensor that was made in inference mode",
    "such a tensor has no version counter, so autograd could not tell whether it was changed before backward",
    "make it under `torch.no_grad()`: that records nothing either, and its tensors can be used for training",
    "or take a normal copy of it outside the block: `.clone()`",
)
