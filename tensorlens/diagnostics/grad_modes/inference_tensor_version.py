"""The version of a tensor was read that was made in inference mode.

Such a tensor keeps no version: that is what makes inference mode cheaper than `no_grad`.

## Fails

```python
import torch

with torch.inference_mode():  # mode_entered_here
    cached = torch.zeros(2)  # value_made_here
print(cached._version)  # rejected_here
```

## Fixed

```python
import torch

with torch.no_grad():
    cached = torch.zeros(2)
print(cached._version)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "inference-tensor-version",
    ("rejected_here", "value_made_here", "mode_entered_here"),
    "the version of a tensor was read that was made in inference mode",
    "such a tensor keeps no version",
    "make it under `torch.no_grad()` if its version matters",
)
