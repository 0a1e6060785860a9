"""`abs_` was called on a complex tensor.

The modulus of a complex number is real, and an in-place operation keeps the data type of its tensor.

## Fails

```python
import torch

wave = torch.ones(2, dtype=torch.complex64)
wave.abs_()  # rejected_here
```

## Fixed

```python
import torch

wave = torch.ones(2, dtype=torch.complex64)
size = wave.abs()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "inplace-abs-complex",
    ("rejected_here",),
    "{op} was called on a complex tensor",
    "the modulus is real, and a change in place keeps the data type",
    "use `abs()`, which makes a new, real tensor",
)
