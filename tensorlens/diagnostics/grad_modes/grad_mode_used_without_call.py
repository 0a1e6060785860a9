"""`torch.no_grad`, or one of its kin, stands in a `with` statement without parentheses.

`torch.no_grad` is a class. The block needs an instance of it, which calling it makes: `with torch.no_grad():`. As a
decorator it works with and without parentheses.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1)
with torch.no_grad:  # rejected_here
    layer(torch.ones(1, 2))
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 1)
with torch.no_grad():
    layer(torch.ones(1, 2))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, severity_of
from tensorlens.records.report import Diagnostic

CODE = "grad-mode-used-without-call"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        name = next((value.name for value in failure.values if value.type == "type"), None)
        if name is not None:
            yield finding(
                CODE,
                severity_of(failure),
                f"a `with` statement was given the class `{name}` itself",
                f"the block needs an instance of `{name}`, and calling the class makes one",
                [facts.label("rejected_here", failure.site, f"`{name}` is not called here")],
                fixes=(fix(f"call it: `with torch.{name}():`"),),
                evidence={"context_manager": name},
            )
