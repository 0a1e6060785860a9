"""Backward was started, without a gradient to start from, at a complex number.

Backward begins with the derivative of the result with respect to itself, which is 1 for a real number. For a complex
one there is no such choice: a loss has to say which real quantity shall become smaller, the modulus, the real part, a
squared distance.

## Fails

```python
import torch

phase = torch.ones(2, dtype=torch.complex64, requires_grad=True)
loss = (phase * 2j).sum()  # value_made_here
loss.backward()  # needed_here
```

## Fixed

```python
import torch

phase = torch.ones(2, dtype=torch.complex64, requires_grad=True)
loss = (phase * 2j).sum()
loss.abs().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "complex-implicit-grad",
    ("needed_here", "value_made_here"),
    "{op} was started from {value}, which is complex",
    "backward begins with the gradient 1 of a real number; a complex number has no such gradient",
    "make the loss real: `.abs()`, `.real` or a squared modulus",
    "or pass the gradient to start from as a tensor",
)
