"""An operation was given complex numbers that require grad, and has no derivative for them.

It computes the values, and refuses to be recorded.

## Fails

```python
import torch

wave = torch.ones(2, dtype=torch.complex64, requires_grad=True)  # leaf_made_here
torch.nn.functional.silu(wave * 2)  # rejected_here
```

## Fixed

```python
import torch

wave = torch.ones(2, dtype=torch.complex64, requires_grad=True)
(wave * 2 * torch.sigmoid(wave * 2)).abs().sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "complex-autograd-unsupported",
    ("rejected_here", "leaf_made_here"),
    "{op} has no derivative for complex numbers",
    "the values can be computed, and the operation can't be recorded",
    "write it with operations that have a complex derivative",
    "if no gradient is needed, call it inside `with torch.no_grad():`",
)
