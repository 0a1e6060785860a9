"""`no_grad`, or one of its kin, was put on a class as a decorator.

Only `__init__` then runs without recording; the other methods record as always. The decorator belongs on the methods
that are meant.

## Fails

```python
import torch


@torch.no_grad()  # rejected_here
class Probe:
    def measure(self, value):
        return value * 2
```

## Fixed

```python
import torch


class Probe:
    @torch.no_grad()
    def measure(self, value):
        return value * 2
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-mode-decorating-class",
    ("rejected_here",),
    "a class was decorated with a switch of gradient recording",
    "the switch then covers the making of instances, not their methods",
    "decorate the methods",
)
