"""A checkpointed region was called with inputs none of which require grad.

The old implementation of checkpoint runs the region without recording and learns from the inputs whether gradients are
needed. If no input requires grad its result does not either, and the parameters inside the region get no gradient,
although they ask for one. It happens at the first layers of a network, whose input is plain data.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(2, 2)
batch = torch.rand(3, 2)  # value_made_here
hidden = checkpoint(layer, batch, use_reentrant=True)  # called_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(2, 2)
batch = torch.rand(3, 2)
hidden = checkpoint(layer, batch, use_reentrant=False)
hidden.sum().backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import refusals
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.report import Diagnostic, Label

CODE = "checkpoint-no-input-requires-grad"
MAX_INPUTS = 3


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for refusal in refusals(facts, CODE):
        given = _given(facts, refusal.index)
        made = _made(facts, refusal.index, given)
        name = named(facts, given[0], refusal.index) if len(given) == 1 else "any of them"
        yield finding(
            CODE,
            "warning",
            "nothing that this checkpoint was given requires grad, so its parameters will get no gradient",
            "a checkpoint with `use_reentrant=True` records its result only if one of its inputs requires grad",
            [facts.label("called_here", refusal.site, "the checkpoint is called here"), *made],
            fixes=(
                fix("pass `use_reentrant=False`: it records what happens inside, whatever the inputs are"),
                fix(f"or let {name} require grad before the call: `requires_grad_()`"),
            ),
            evidence={"inputs": len(given)},
        )


def _given(facts: TraceIndex, at: int) -> list[int]:
    """The tensors that the checkpoint was given: those of the call in which the warning came."""
    call = next((c for c in facts.calls if c.index > at and c.op == "CheckpointFunction.apply"), None)
    return [] if call is None else list(dict.fromkeys(access.tensor for access in call.inputs))


def _made(facts: TraceIndex, at: int, given: list[int]) -> Iterator[Label | None]:
    for number in given[:MAX_INPUTS]:
        made = next(iter(facts.producers(number, at)), None) or facts.first_use(number)
        text = f"{named(facts, number, at)} is made here and does not require grad"
        yield facts.label("value_made_here", None if made is None else made.site, text)
