"""Anomaly mode stopped backward because a backward formula returned a gradient that is not a number.

The forward pass may look healthy. Some formulas have no finite value at the edge of their domain: the slope of a square
root is infinite at 0, that of a logarithm too, and infinity times 0 is NaN. The operation named in the message is the
first one, counted from the loss, whose gradient came out as NaN; the value that it got in the forward pass is what to
look at. Masking the result afterwards does not help, because the NaN arises inside the masked branch.

## Fails

```python
import torch

with torch.autograd.set_detect_anomaly(True):  # mode_entered_here
    distance = torch.tensor([0.0, 4.0], requires_grad=True)  # value_made_here
    length = distance.sqrt()  # graph_built_here
    (length * torch.tensor([0.0, 1.0])).sum().backward()  # needed_here
```

## Fixed

```python
import torch

distance = torch.tensor([0.0, 4.0], requires_grad=True)
length = (distance + 1e-8).sqrt()
(length * torch.tensor([0.0, 1.0])).sum().backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._anomaly import failing_call, mode_label, value_label
from tensorlens.diagnostics.shared.wording import count_text, finding, fix, node_text, op_text, severity_of
from tensorlens.records.model import Call, Failure
from tensorlens.records.report import Diagnostic, Fix

CODE = "anomaly-nan"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """The node whose gradient was not a number, the call that recorded it, and the value that this call was given."""
    node = failure.saved[0] if failure.saved else None
    name = "an operation" if node is None else node_text(node.node)
    call = failing_call(facts, failure)
    built = None
    if call is not None:
        built = facts.label("graph_built_here", call.site, f"{name} is recorded here{count_text(facts, call)}")
    return finding(
        CODE,
        severity_of(failure),
        f"the gradient computed by {name} is not a number",
        f"no NaN reached {name}; its own formula made one of what it was given",
        [
            built,
            value_label(facts, failure, call),
            facts.label("needed_here", failure.site, f"{name} is run backward here"),
            mode_label(facts, failure.index),
        ],
        fixes=tuple(_fixes(call)),
        evidence={"node": None if node is None else node.node, "output": None if node is None else node.slot},
    )


def _fixes(call: Call | None) -> Iterator[Fix]:
    if call is None or call.op.endswith(".apply"):
        yield fix("look at the formula in `backward` for a division by zero or a product of 0 and infinity")
        return
    op = op_text(call.op)
    yield fix(f"keep what {op} is given away from where its slope is infinite: `clamp(min=...)` or a small constant")
    yield fix(f"to leave elements out, put harmless values in their place before {op}: masked after it, 0 * inf is NaN")
