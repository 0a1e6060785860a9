"""A hook that packs saved tensors changed the tensor that it was given.

The hook is handed the very tensor that the program goes on using. It returns what shall be kept in its place, and must
leave the tensor as it is.

## Fails

```python
import torch


def pack(tensor):
    return tensor.div_(2)  # modified_here


weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept * 2):  # mode_entered_here
    grown = weight.exp()  # saved_here
```

## Fixed

```python
import torch


def pack(tensor):
    return tensor / 2


weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept * 2):
    grown = weight.exp()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "pack-hook-modified-inplace",
    (
        "modified_here:hook",
        "mode_entered_here:hook",
        "saved_here:hook",
    ),
    "a pack hook changed the tensor that it was given",
    "the tensor is the program's own, not a copy: the forward pass goes on with it",
    "change a copy: `tensor.clone()`, or use the out-of-place form of the operation",
)
