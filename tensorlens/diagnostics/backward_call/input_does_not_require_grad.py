"""A gradient was asked for with respect to a tensor that does not require grad.

Autograd records only what leads back to tensors that require grad. For any other tensor it keeps no path, so when
`torch.autograd.grad` or `backward(inputs=...)` names one, its gradient cannot be computed any more. The flag has to be
set before the forward pass: setting it afterwards does not add what was not recorded.

## Fails

```python
import torch

weight = torch.tensor([1.0, 3.0], requires_grad=True)
image = torch.tensor([0.2, 0.4])  # leaf_made_here
score = (weight * image).sum()  # graph_built_here
(saliency,) = torch.autograd.grad(score, image)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 3.0], requires_grad=True)
image = torch.tensor([0.2, 0.4], requires_grad=True)
score = (weight * image).sum()
(saliency,) = torch.autograd.grad(score, image)
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
        "input-does-not-require-grad",
        "the gradient of {name} was asked for, and {name} does not require grad",
        "autograd records paths only to tensors that require grad; for {name} it recorded none",
    )
