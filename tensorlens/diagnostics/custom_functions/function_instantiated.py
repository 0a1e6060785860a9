"""A custom function was called like a class, which makes an object and computes nothing.

The methods of a function are static: there is no object to make. `apply` runs it and records it.

## Fails

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


result = Double(torch.ones(2))  # rejected_here
```

## Fixed

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


result = Double.apply(torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.rejected_call import RejectedCall


def _not_called(refusal: RejectedCall) -> bool:
    """Whether the object was only made: calling it is an error of its own, which says it all."""
    called = (refusal.facts.span(failure.site) for failure in refusal.facts.failures("legacy-function-called"))
    made = refusal.facts.span(refusal.site)
    return made is None or all(span is None or span.line != made.line for span in called)


find = rejected(
    "function-instantiated",
    ("rejected_here",),
    "a custom function was called like a class",
    "this makes an object and computes nothing: the methods of a function are static",
    "run it with `.apply(...)`",
    when=_not_called,
)
