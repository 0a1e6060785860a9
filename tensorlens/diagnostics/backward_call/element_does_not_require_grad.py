"""backward was started from a tensor that has no autograd history.

A gradient flows from a result back to the leaves along the graph that was recorded while the result was computed. A
tensor without `grad_fn` that does not require grad itself has no such graph: either the path was cut on the way (by
`detach()`, `no_grad`, a conversion to Python or NumPy, an operation that has no derivative), or nothing it was computed
from required grad. Setting `requires_grad = True` on the result silences the error and trains nothing: the result
becomes a leaf of its own, and nothing reaches the parameters.

## Fails

```python
import torch

weight = torch.tensor([2.0, 3.0], requires_grad=True)  # leaf_made_here
score = (weight * 4).detach()  # graph_cut_here
score.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([2.0, 3.0], requires_grad=True)
score = weight * 4
score.sum().backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import Cut, find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import finding, fix, named, severity_of, with_method
from tensorlens.records.model import Failure
from tensorlens.records.report import Diagnostic

CODE = "element-does-not-require-grad"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Which of the roots has no history, and the line where it was lost."""
    root = next((a.tensor for a in failure.inputs if not facts.requires_grad(a.tensor, failure.index)), None)
    cut = None if root is None else find_cut(facts, root, failure.index)
    name = named(facts, root, failure.index)
    labels = [*cut_labels(facts, cut), facts.label("needed_here", failure.site, f"backward starts from {name}")]
    asked = with_method(name, "requires_grad_()")
    return finding(
        CODE,
        severity_of(failure),
        _title(name, cut),
        "no line was found where its history was lost" if cut is None else cut_reason(facts, cut),
        labels,
        fixes=(
            *cut_fixes(facts, cut),
            fix(f"not a cure: {asked} only makes it a leaf"),
        ),
        evidence={"root": name, "cut": None if cut is None else cut.call.op},
    )


def _title(name: str, cut: Cut | None) -> str:
    if cut is not None and cut.source is None:
        return f"backward was called on {name}, and nothing that it was computed from requires grad"
    return f"backward was called on {name}, which has no autograd history"
