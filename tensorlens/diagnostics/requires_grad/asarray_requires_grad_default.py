"""`torch.asarray` was given a tensor that requires grad, and not told whether its result should.

It returns the tensor itself, history included, where it once returned a detached one. The warning asks to say which is
meant.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2  # graph_built_here
values = torch.asarray(hidden)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
values = torch.asarray(hidden, requires_grad=False)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "asarray-requires-grad-default",
    ("rejected_here", "graph_built_here"),
    "{op} was given a tensor with history, and keeps it",
    "it once cut the history off where nothing was said of it",
    "say what is meant: `requires_grad=True`, or `requires_grad=False`",
)
