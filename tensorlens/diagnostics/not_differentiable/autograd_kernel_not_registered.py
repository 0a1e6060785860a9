"""Backward came to an operator that was registered without anything for autograd.

An operator of the low-level `torch.library.Library` has a kernel for computing and none for differentiating. PyTorch
goes through what the kernel did, or stops there, and warns that the gradient may be wrong.

## Fails

```python
import torch

library = torch.library.Library("page_raw", "DEF")
library.define("triple(Tensor value) -> Tensor")
library.impl("triple", lambda value: value.detach() * 3, "CPU")  # function_defined_here
weight = torch.ones(2, requires_grad=True)
result = torch.ops.page_raw.triple(weight)  # called_here
result.sum().backward()  # needed_here
```

## Fixed

```python
import torch

library = torch.library.Library("page_raw", "DEF")
library.define("triple(Tensor value) -> Tensor")
library.impl("triple", lambda value: value.detach() * 3, "CPU")
torch.library.register_autograd("page_raw::triple", lambda ctx, gradient: gradient * 3, lib=library)
weight = torch.ones(2, requires_grad=True)
result = torch.ops.page_raw.triple(weight)
result.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "autograd-kernel-not-registered",
    (
        "needed_here",
        "called_here:operator",
        "function_defined_here:operator",
    ),
    "backward came to an operator without a derivative and went on without it",
    "no gradient passes through the operator: what lies before it is given none",
    "register a derivative: `torch.library.custom_op` and its `register_autograd` do",
)
