"""A floating point tensor was used as an index.

An index is a whole number, and how a result depends on it has no derivative. A position that is to be learned needs
something smooth, such as weights over all entries.

## Fails

```python
import torch

place = torch.tensor([1.0], requires_grad=True)  # value_made_here
table = torch.tensor([10.0, 20.0, 30.0])
entry = table[place]  # rejected_here
```

## Fixed

```python
import torch

place = torch.tensor([1.0], requires_grad=True)
table = torch.tensor([10.0, 20.0, 30.0])
nearness = torch.softmax(-(torch.arange(3) - place) ** 2, dim=0)
entry = (nearness * table).sum()
entry.backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "gradient-index-not-integer",
    ("rejected_here", "value_made_here"),
    "a floating point tensor was used as an index",
    "an index is a whole number: nothing can be differentiated with respect to it",
    "convert it, `.long()`, if no gradient is needed through the index",
    "to learn a position, weigh all entries in place of picking one",
)
