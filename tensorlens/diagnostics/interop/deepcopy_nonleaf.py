"""`copy.deepcopy` came upon a computed tensor.

A computed tensor holds on to the graph that it came from. A deep copy would have to copy that graph with everything it
refers to, so only leaves can be copied. The tensor is often hidden in a module or a dictionary that is being copied: a
cached activation, a weight computed by weight normalisation or pruning, a best result so far.

## Fails

```python
import copy

import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
state = {"step": 3, "average": weight * 0.9}  # nonleaf_made_here
saved = copy.deepcopy(state)  # rejected_here
```

## Fixed

```python
import copy

import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
state = {"step": 3, "average": (weight * 0.9).detach()}
saved = copy.deepcopy(state)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "deepcopy-nonleaf",
    ("rejected_here", "nonleaf_made_here"),
    "a deep copy came upon {nonleaf}, which is not a leaf",
    "{nonleaf} holds on to the graph it was computed by, and a graph can't be copied",
    "store values that need no gradient without their graph: {nonleaf}`.detach()`",
    "to copy a model, clear what it caches, or load its `state_dict()` into a new one",
)
