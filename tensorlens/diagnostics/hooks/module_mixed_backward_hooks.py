"""A module was given a full backward hook and an old one.

The old kind, `register_backward_hook`, sees the last operation of a module only; the full kind sees the module's own
inputs and outputs. They wrap the module in different ways and cannot be used together.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 2)
layer.register_full_backward_hook(lambda module, inputs, outputs: None)  # hook_registered_here
layer.register_backward_hook(lambda module, inputs, outputs: None)  # rejected_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 2)
layer.register_full_backward_hook(lambda module, inputs, outputs: None)
layer.register_full_backward_hook(lambda module, inputs, outputs: None)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "module-mixed-backward-hooks",
    (
        "rejected_here",
        "hook_registered_here:before",
    ),
    "a module was given a full backward hook and an old one",
    "they wrap the module in different ways and can't be used together",
    "use `register_full_backward_hook` for both",
)
