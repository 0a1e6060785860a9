"""A hook was called with another number of arguments than it takes.

Each kind of hook is called in its own way: a hook of a tensor with the gradient, a full backward hook of a module with
the module, the gradients of its inputs and those of its outputs. Registering does not check it; the first backward
does.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def show(name, gradient):  # function_defined_here
    print(name, gradient)


weight.register_hook(show)  # hook_registered_here
weight.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def show(gradient):
    print("weight", gradient)


weight.register_hook(show)
weight.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.roles.hooks import not_callable

find = rejected(
    "hook-wrong-arity",
    (
        "function_defined_here:refused",
        "hook_registered_here",
        "needed_here:calling",
    ),
    "a hook was called with another number of arguments than it takes",
    "the engine decides what {function} is given: a tensor's hook the gradient, a module's the module and two tuples",
    "give it the parameters of its kind: `hook(gradient)`, or `hook(module, grad_input, grad_output)` on a module",
    when=not_callable,
)
