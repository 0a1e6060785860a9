"""One of several paths from the parameters to the loss was cut, so backward gave only a part of the gradient.

Where every path is cut, backward fails. Where one is left it succeeds: parameters behind the cut keep a `.grad` of
None, or get a gradient in which a term is missing. The cut may be meant, as for a target network or in the
discriminator's step of a GAN; only the intention tells the two apart.

## Fails

```python
import torch

encoder, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)  # leaf_made_here
code = encoder(torch.ones(1, 3)).detach()  # graph_cut_here
decoder(code).sum().backward()  # needed_here
print(encoder.weight.grad)  # observed_here
```

## Fixed

```python
import torch

encoder, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
code = encoder(torch.ones(1, 3))
decoder(code).sum().backward()
print(encoder.weight.grad)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.training._without_gradient import find_cut_off, find_unused
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_cut_off(facts, "branch-detached", lambda cut: cut.call.op != "nn.Parameter")
    yield from find_unused(facts, "branch-detached")
