"""The vector for a product with a derivative has another shape than what it belongs to.

For `vjp` the vector has the shape of the result, for `jvp`, `hvp` and `vhp` that of the inputs.

## Fails

```python
import torch
from torch.autograd.functional import vjp

direction = torch.ones(3)  # value_made_here
vjp(lambda state: state * 3, torch.ones(2), direction)  # called_here
```

## Fixed

```python
import torch
from torch.autograd.functional import vjp

direction = torch.ones(2)
vjp(lambda state: state * 3, torch.ones(2), direction)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "functional-vector-mismatch",
    ("called_here:given", "value_made_here:vector"),
    "the vector {value} does not fit",
    "{op} multiplies it with the derivative, element by element",
    "give it the shape of the result (`vjp`) or of the inputs (`jvp`)",
)
