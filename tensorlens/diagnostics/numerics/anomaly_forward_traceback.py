"""Backward failed while anomaly mode was on, and PyTorch shows where the failing operation was called in the forward
pass.

This warning is the help that was asked for with `set_detect_anomaly(True)`: every operation remembers the Python stack
it was called from, and when its backward formula fails, that stack is printed before the error itself. The mistake is
told by the error that follows; the line in this traceback is where the operation was recorded.

## Fails

```python
import torch

torch.autograd.set_detect_anomaly(True)  # mode_entered_here
ratio = torch.tensor([0.0, 1.0], requires_grad=True)
root = ratio.sqrt() * 0  # graph_built_here
try:
    root.sum().backward()  # needed_here
except RuntimeError as error:
    print(error)
```

## Fixed

```python
import torch

ratio = torch.tensor([0.0, 1.0], requires_grad=True)
root = (ratio + 1e-6).sqrt() * 0
root.sum().backward()
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
        "anomaly-forward-traceback",
        "anomaly mode keeps the Python stack of each operation, and shows that of the one whose backward failed",
        "the line in the printed stack is where the operation was recorded: look at what it was given",
    )
