"""Inside a checkpointed region a custom function read `ctx.saved_tensors` more than once.

Under a checkpoint each read fetches the tensor that was computed again, and it is handed out once and then forgotten,
so that memory stays small. One read, kept in a variable, is enough.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value.cos()

    @staticmethod
    def backward(ctx, gradient):
        return -gradient * ctx.saved_tensors[0].sin() + 0 * ctx.saved_tensors[0]  # rejected_here


weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(Cosine.apply, weight * 1, use_reentrant=False)  # called_here
wave.sum().backward()  # needed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value.cos()

    @staticmethod
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        return -gradient * value.sin() + 0 * value


weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(Cosine.apply, weight * 1, use_reentrant=False)
wave.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "checkpoint-unpacked-twice",
    ("rejected_here", "called_here", "needed_here"),
    "`ctx.saved_tensors` was read a second time in a checkpointed function",
    "under a checkpoint each read hands out the tensor that was computed again, once, and then forgets it",
    "read it once and keep what it gives in a variable: `(value,) = ctx.saved_tensors`",
)
