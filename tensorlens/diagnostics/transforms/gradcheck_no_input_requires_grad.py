"""`gradcheck` was given inputs none of which require grad.

Without an input to differentiate with respect to there is nothing to check.

## Fails

```python
import torch

value = torch.ones(2, dtype=torch.float64)  # value_made_here
torch.autograd.gradcheck(lambda x: x * 3, (value,))  # called_here
```

## Fixed

```python
import torch

value = torch.ones(2, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(lambda x: x * 3, (value,))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "gradcheck-no-input-requires-grad",
    ("called_here:given", "value_made_here"),
    "{op} was given no tensor that requires grad",
    "there is no gradient to compare: {value} does not require grad",
    "make the input with `requires_grad=True`, in `torch.float64`",
)
