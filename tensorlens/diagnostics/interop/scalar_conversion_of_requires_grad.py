"""A tensor that takes part in autograd was converted to a Python number.

The conversion works, and the number has no history: a loss that is computed from it does not lead back to the
parameters. PyTorch warns because the conversion is easy to overlook: `float(...)`, functions of `math`, or
`torch.tensor([...])` around tensors. For a value that is only printed or logged it is right, and `item()` or `detach()`
says so.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
total = weight.pow(2).sum()  # graph_built_here
shown = float(total)  # graph_cut_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
total = weight.pow(2).sum()
shown = total.item()
total.backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "scalar-conversion-of-requires-grad",
    ("graph_cut_here", "graph_built_here"),
    "{graph} is part of the graph and was converted to a Python number",
    "a number has no history: what is computed from it does not lead back to the parameters",
    "for a value to print or to log, say so: `.item()` or `.detach()`",
    "for a value to be differentiated, stay with tensors: `torch.stack`, `torch.exp` and so on",
)
