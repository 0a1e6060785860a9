"""`torch.autograd.grad` was asked for the gradient of a tensor that the output was not computed from.

The tensor requires grad, but no path in the recorded graph leads from the output to it. A gradient of zero would be a
plausible answer and would hide the most common cause: another tensor was meant. It may be a copy made before the
forward pass (`x.clone()`, `x.view(...)`, `x.to(...)`), a parameter that a branch skipped, or a name that has been bound
to a new tensor since. So PyTorch raises instead.

## Fails

```python
import torch

start = torch.tensor([1.0, 2.0], requires_grad=True)
offset = torch.tensor([0.1, 0.1], requires_grad=True)  # leaf_made_here
energy = start.pow(2).sum()  # graph_built_here
torch.autograd.grad(energy, [start, offset])  # needed_here
```

## Fixed

```python
import torch

start = torch.tensor([1.0, 2.0], requires_grad=True)
offset = torch.tensor([0.1, 0.1], requires_grad=True)
energy = (start + offset).pow(2).sum()
torch.autograd.grad(energy, [start, offset])
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.backward_call._requested_gradients import find_asked
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_asked(
        facts,
        "unused-input-in-grad",
        "the gradient of {name} was asked for, and {root} was not computed from it",
        "no recorded path leads from {root} back to {name} as it is now",
    )
