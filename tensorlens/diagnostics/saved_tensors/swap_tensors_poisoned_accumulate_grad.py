"""A parameter was swapped for another tensor between the forward pass and backward.

With `torch.__future__.set_swap_module_params_on_conversion(True)`, `module.to(...)` and its kin swap the parameters
for converted ones. The graph that was recorded before still leads to what they were, and backward refuses to store a
gradient there.

## Fails

```python
import torch

torch.__future__.set_swap_module_params_on_conversion(True)
layer = torch.nn.Linear(2, 1)
loss = layer(torch.ones(1, 2)).sum()  # graph_built_here
layer.double()  # replaced_here
loss.backward()  # needed_here
```

## Fixed

```python
import torch

torch.__future__.set_swap_module_params_on_conversion(True)
layer = torch.nn.Linear(2, 1)
layer.double()
loss = layer(torch.ones(1, 2, dtype=torch.float64)).sum()
loss.backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "swap-tensors-poisoned-accumulate-grad",
    ("needed_here", "replaced_here:swapped", "graph_built_here"),
    "a parameter became another tensor after the graph was recorded",
    "the graph leads to the tensor that it was, and backward stores no gradient there",
    "convert the module before the forward pass, or after backward",
)
