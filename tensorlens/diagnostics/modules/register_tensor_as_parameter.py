"""`register_parameter` was given a tensor that is not a `Parameter`.

A `Parameter` is a tensor that a module owns and that is to be trained. `requires_grad=True` alone does not make one.

## Fails

```python
import torch

module = torch.nn.Module()
scale = torch.ones(2, requires_grad=True)  # value_made_here
module.register_parameter("scale", scale)  # rejected_here
```

## Fixed

```python
import torch

module = torch.nn.Module()
scale = torch.ones(2)
module.register_parameter("scale", torch.nn.Parameter(scale))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "register-tensor-as-parameter",
    ("rejected_here", "value_made_here"),
    "`register_parameter` was given a tensor that is not a `Parameter`",
    "a module trains what it owns as a `Parameter`; requiring grad is not enough",
    "wrap it: `nn.Parameter(values)`",
    "for values that are not trained, use `register_buffer`",
)
