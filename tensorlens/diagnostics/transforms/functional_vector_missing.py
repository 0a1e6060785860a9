"""A product with a derivative was asked for without the vector.

`vjp`, `jvp` and their kin multiply the derivative with a vector `v`. It may only be left out where it can be nothing
but 1: for a single number.

## Fails

```python
import torch
from torch.autograd.functional import vjp

vjp(lambda state: state * 3, torch.ones(2))  # called_here
```

## Fixed

```python
import torch
from torch.autograd.functional import vjp

vjp(lambda state: state * 3, torch.ones(2), torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "functional-vector-missing",
    ("called_here:given",),
    "{op} was called without the vector to multiply with",
    "the result is not a single number, so there is no natural vector",
    "pass a tensor shaped like the result (`vjp`) or like the inputs (`jvp`)",
)
