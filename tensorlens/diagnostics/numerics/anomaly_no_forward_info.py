"""Anomaly mode was on in backward only, so PyTorch cannot say where the failing operation was called.

The Python stack of an operation is kept in the forward pass, if the mode is on at that time. Switched on around
`backward` alone, it finds the bad gradient and has no line to show for it.

## Fails

```python
import torch

gap = torch.tensor([0.0, 1.0], requires_grad=True)
length = gap.sqrt() * 0  # graph_built_here
with torch.autograd.set_detect_anomaly(True):  # mode_entered_here
    try:
        length.sum().backward()  # needed_here
    except RuntimeError as error:
        print(error)
```

## Fixed

```python
import torch

gap = torch.tensor([0.0, 1.0], requires_grad=True)
length = (gap + 1e-6).sqrt() * 0
with torch.autograd.set_detect_anomaly(True):
    length.sum().backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._anomaly import find_announced
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_announced(
        facts,
        "anomaly-no-forward-info",
        "the stack of an operation is kept only while anomaly mode is on, and it was off in the forward pass",
        "put the forward pass inside anomaly mode too",
    )
