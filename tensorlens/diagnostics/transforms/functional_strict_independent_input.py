"""In strict mode, the result of a function did not depend on one of its inputs.

With `strict=True` the functions of `torch.autograd.functional` refuse an input that the result was not computed from:
its derivative would be a block of zeros, and most often the input was forgotten. Without it the zeros are returned.

## Fails

```python
import torch
from torch.autograd.functional import jacobian


def area(width, height):  # function_defined_here
    return width * width


side = torch.ones(2)
jacobian(area, (side, side), strict=True)  # called_here
```

## Fixed

```python
import torch
from torch.autograd.functional import jacobian


def area(width, height):
    return width * height


side = torch.ones(2)
jacobian(area, (side, side), strict=True)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "functional-strict-independent-input",
    ("called_here:given", "function_defined_here:given"),
    "the result of the function does not depend on one of its inputs",
    "in strict mode {op} refuses an input whose derivative would be zero everywhere",
    "compute the result from every input",
    "or leave `strict=True` out, and expect zeros for that input",
)
