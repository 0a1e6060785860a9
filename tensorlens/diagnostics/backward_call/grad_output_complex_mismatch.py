"""The gradient passed to backward is real and the result complex, or the other way round.

The gradient to start from has one weight for each element of the result, in the same kind of number.

## Fails

```python
import torch

phase = torch.ones(2, dtype=torch.complex64, requires_grad=True)
turned = phase * 1j  # graph_built_here
start = torch.ones(2)  # value_made_here
turned.backward(start)  # needed_here
```

## Fixed

```python
import torch

phase = torch.ones(2, dtype=torch.complex64, requires_grad=True)
turned = phase * 1j
start = torch.ones_like(turned)
turned.backward(start)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-output-complex-mismatch",
    ("needed_here", "graph_built_here", "value_made_here"),
    "the gradient passed to {op} is real and the result complex, or the other way round",
    "the gradient to start from is of the same kind of number as the result",
    "make it from the result: `torch.ones_like(...)`",
)
