"""An operation was given a tensor that requires grad in a place for which it has no derivative.

Class weights, running averages and similar arguments are constants to such an operation. If one of them requires grad,
its gradient could not be computed, and the operation says so in the forward pass.

## Fails

```python
import torch

scores = torch.zeros(1, 3, requires_grad=True)
balance = torch.ones(3, requires_grad=True)  # leaf_made_here
torch.nn.functional.cross_entropy(scores, torch.tensor([2]), weight=balance)  # rejected_here
```

## Fixed

```python
import torch

scores = torch.zeros(1, 3, requires_grad=True)
balance = torch.ones(3)
torch.nn.functional.cross_entropy(scores, torch.tensor([2]), weight=balance).backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "argument-not-differentiable",
    ("rejected_here", "leaf_made_here:argument"),
    "{op} was given a tensor that requires grad where it has no derivative",
    "this argument is a constant to the operation: its gradient can't be computed",
    "pass it without history: `.detach()`",
    "or make it without `requires_grad`",
)
