"""Names distributions over classes that take logarithms for probabilities, as `Categorical(log_probs)` does."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CLASSES = ("Categorical.__init__", "OneHotCategorical.__init__", "OneHotCategoricalStraightThrough.__init__")
_SAME_VALUES = frozenset("view reshape squeeze unsqueeze flatten transpose permute getitem contiguous float t".split())
_LOGARITHMS = frozenset(("log_softmax", "logsigmoid"))
_BOUNDED = _SAME_VALUES | frozenset("add radd clamp clip clamp_min".split())  # from a softmax to its logarithm
_MAX_DEPTH = 8


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a constructor that divides logarithms by their sum, so the least likely class gets the greatest share."""
    facts, seen = training.facts, set[int]()
    for call in facts.calls if training.measured.steps else ():
        through = facts.trace.sites[call.site].through
        if through not in _CLASSES or call.site in seen or op_name(call) not in ("sum", "div", "truediv"):
            continue
        seen.add(call.site)
        made = _logarithm(facts, call) if op_name(call) == "sum" else None
        if made is not None:
            name = through.partition(".")[0]
            yield stands_out(
                f"{as_written(facts, call)} takes what it is given for probabilities, and that is the result of a "
                f"{op_name(made)}: it divides these logarithms by their sum, so the least likely class gets the "
                f"greatest probability (`{name}(logits=...)` takes logarithms)",
                facts.label("needed_here", call.site, "takes them for probabilities", call.index),
                facts.label("value_made_here", made.site, f"the {op_name(made)}", made.index),
            )


def _logarithm(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the call that made the logarithms of probabilities that a call sums."""
    number, before, found = call.inputs[0].tensor, call.index, None
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        name = op_name(made)
        if found is not None and name in ("softmax", "sigmoid"):
            return found
        if found is None and name in _LOGARITHMS:
            return made
        if found is None and name == "log":
            found = made
        elif name not in (_SAME_VALUES if found is None else _BOUNDED) or len(made.inputs) > 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None
