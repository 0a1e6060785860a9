"""A gradient that was assigned lies in memory in another order than its leaf.

Backward adds to the tensor that `.grad` holds. If its strides are not those of the leaf, the optimizer's kernels run
slower, and `DistributedDataParallel` has to copy.

## Fails

```python
import torch

weight = torch.ones(2, 3, requires_grad=True)  # leaf_made_here
weight.grad = torch.zeros(3, 2).t()  # value_made_here
weight.square().sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.ones(2, 3, requires_grad=True)
weight.grad = torch.zeros(2, 3)
weight.square().sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-layout-contract",
    ("needed_here", "leaf_made_here", "value_made_here:assigned"),
    "the gradient assigned to {leaf} lies in memory in another order than {leaf}",
    "backward adds to it as it is: what reads both has to go through memory in two orders",
    "assign a gradient with the same strides: `torch.zeros_like(...)`",
    "or leave it None: backward makes one that fits",
)
