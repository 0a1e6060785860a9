"""A full backward hook returned another number of gradients than the module has inputs.

What it returns takes the place of the gradients of the inputs, one for each tensor that the module was called with.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 2)


def halve(module, inputs, outputs):
    return inputs[0] / 2, None  # returned_here


layer.register_full_backward_hook(halve)  # hook_registered_here
layer(torch.ones(1, 2, requires_grad=True)).sum().backward()  # needed_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 2)


def halve(module, inputs, outputs):
    return (inputs[0] / 2,)


layer.register_full_backward_hook(halve)
layer(torch.ones(1, 2, requires_grad=True)).sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "module-backward-hook-wrong-count",
    (
        "returned_here",
        "hook_registered_here",
        "needed_here:calling",
    ),
    "a backward hook returned another number of gradients than the module has inputs",
    "{function} handed back {handed}",
    "return a tuple with one entry for each input of the module's forward, None where there is none",
    "to look at the gradients only, return nothing",
)
