"""A module with a backward hook returned something other than a tensor or a tuple of tensors.

The hook is tied to the tensors that the module returns. In a dictionary, a list or an object of one's own it does not
find them, so it is never called.

## Fails

```python
import torch


class Head(torch.nn.Module):
    def forward(self, features):
        return {"score": features * 3}  # returned_here


head = Head()
head.register_full_backward_hook(lambda module, inputs, outputs: None)  # hook_registered_here
result = head(torch.ones(2, requires_grad=True))  # called_here
```

## Fixed

```python
import torch


class Head(torch.nn.Module):
    def forward(self, features):
        return features * 3


head = Head()
head.register_full_backward_hook(lambda module, inputs, outputs: None)
result = {"score": head(torch.ones(2, requires_grad=True))}
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "module-backward-hook-non-tensor-output",
    (
        "called_here:spot",
        "hook_registered_here:module",
        "returned_here:module",
    ),
    "a backward hook will never be called",
    "its module returns neither a tensor nor a tuple of tensors, so there is no result to hook",
    "return a tensor or a tuple of tensors, or hook the tensors with `register_hook`",
)
