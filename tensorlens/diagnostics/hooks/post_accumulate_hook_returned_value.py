"""A hook that runs after a gradient was stored returned a value.

It is called with the leaf, whose `.grad` is already set, and acts on that. There is nothing that a returned value could
replace, so PyTorch takes it for a misunderstanding.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def shrink(parameter):
    return parameter.grad * 0.5  # returned_here


weight.register_post_accumulate_grad_hook(shrink)  # hook_registered_here
weight.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def shrink(parameter):
    parameter.grad.mul_(0.5)


weight.register_post_accumulate_grad_hook(shrink)
weight.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "post-accumulate-hook-returned-value",
    (
        "returned_here",
        "hook_registered_here",
        "needed_here:calling",
    ),
    "a hook that runs after accumulation returned a value",
    "the gradient is stored already, so nothing can be replaced: {function} handed back {handed}",
    "change `parameter.grad` inside the hook and return nothing",
    "to replace a gradient before it is stored, use `register_hook`",
)
