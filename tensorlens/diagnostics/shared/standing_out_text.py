"""Makes the sentences about what stands out in a training, and lists parameters in them. Says what a finder is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.role_names import ROLE_NAMES
from tensorlens.records.report import Label, StandingOut

Finder = Callable[[MeasuredTraining], Iterator[StandingOut]]
_NAMED = 3


def stands_out(text: str, *labels: Label | None) -> StandingOut:
    """Makes a sentence with the labels whose line is known, each once. The first is the line that it names.

    Raises:
        KeyError: a label has a role that is not in `ROLE_NAMES`.
    """
    for label in labels:
        if label is not None and label.role not in ROLE_NAMES:
            raise KeyError(label.role)
    known = {(label.role, label.span): label for label in labels if label is not None}
    return StandingOut(text, tuple(known.values()))


_MODULE = re.compile(r"`?(\w+\.)*(?!Parameter|Tensor|Variable)[A-Z]\w*\(\.*\)")


def _named(name: str, count: int) -> str:
    """Names a parameter; of one that only has the call that makes its module, it says so."""
    if _MODULE.fullmatch(name):
        return f"a parameter of `{name}`" if count == 1 else f"{count:,} parameters of `{name}`"
    return f"`{name}`" + (f" ({count:,} tensors)" if count > 1 else "")


def listed(rows: Sequence[ParameterRow]) -> str:
    """Lists parameters by name: "`model.fc.weight`, `model.fc.bias` and 4 more"."""
    counts = Counter(row.name for row in rows)  # tensors that have one name in turn count as one
    names = [_named(name, count) for name, count in counts.items()]
    if len(names) <= _NAMED:
        return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
