"""An old backward hook was used on a module that does more than one operation.

`register_backward_hook` is tied to the last operation in the module, so the gradients that it reports are that
operation's and not the module's. `register_full_backward_hook` reports the gradients of the module's own inputs and
outputs.

## Fails

```python
import torch


class Block(torch.nn.Module):
    def forward(self, value):
        return (value + 1).square()


block = Block()
block.register_backward_hook(lambda module, inputs, outputs: None)  # hook_registered_here
block(torch.ones(2, requires_grad=True))  # called_here
```

## Fixed

```python
import torch


class Block(torch.nn.Module):
    def forward(self, value):
        return (value + 1).square()


block = Block()
block.register_full_backward_hook(lambda module, inputs, outputs: None)
block(torch.ones(2, requires_grad=True))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "non-full-backward-hook",
    (
        "called_here:spot",
        "hook_registered_here:module",
    ),
    "an old backward hook sees only the last operation of its module",
    "the module records more than one node or has more than one result; the hook is given the gradients of one",
    "use `register_full_backward_hook`",
)
