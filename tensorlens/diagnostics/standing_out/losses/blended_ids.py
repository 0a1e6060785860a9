"""Names class ids that are interpolated between, as those of a mask that a line resizes bilinearly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.given_arguments import argument_of, default_of
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_call import written_call
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_LOSSES = frozenset(("cross_entropy", "nll_loss"))
_SAME_VALUES = frozenset(
    "view reshape squeeze unsqueeze flatten transpose permute getitem contiguous float long int double half to type "
    "stack cat clone select unbind rot90 flip expand type_as pad".split()
)
_BLENDING = frozenset("linear bilinear bicubic trilinear area".split())
_WHOLE = frozenset("int64 int32 int16 int8 uint8".split())
_MAX_DEPTH = 24


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds such targets of losses over classes, if whole numbers are made floats, resized and made whole again."""
    facts, seen = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _LOSSES or call.site in seen or len(call.inputs) < 2:
                continue
            seen.add(call.site)
            resized = _resized(facts, call)
            if resized is not None:
                yield stands_out(
                    f"{as_written(facts, resized[0])} interpolates between ids of classes ({resized[1]}), and a "
                    "number between two ids, made whole, may be the id of another class; "
                    f"{as_written(facts, call)} takes them for classes",
                    facts.label("value_made_here", resized[0].site, "ids are interpolated here", resized[0].index),
                    facts.label("needed_here", call.site, "takes them for classes", call.index),
                )


def _resized(facts: TraceIndex, loss: Call) -> tuple[Call, str] | None:
    """Returns the call that interpolates between the ids which a loss is given, and how it does so."""
    number, before, found = loss.inputs[1].tensor, loss.index, None
    classes = facts.tensor(loss.inputs[0].tensor).shape[1:2]
    if facts.tensor(number).dtype != "int64" or classes == (2,):  # of 0 and 1, no other id is between them
        return None
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        number, before = made.inputs[0].tensor, made.index
        if op_name(made) == "interpolate" and found is None:
            mode = _mode(facts, made)
            if mode not in _BLENDING:
                return None
            found = made, f'`mode="{mode}"`'
        elif op_name(made) not in _SAME_VALUES:
            return None
        if found is not None and facts.tensor(number).dtype in _WHOLE:
            return found
    return None


def _mode(facts: TraceIndex, call: Call) -> str:
    """Returns the mode that the source gives to a call, also by an argument of the function around it."""
    written, span = written_call(facts, call), facts.span(call.site)
    given = None if written is None or not written.is_whole else written.argument(3, "mode")
    function = None if span is None else function_around(facts, span.file, span.line)
    if isinstance(given, ast.Name) and span is not None and function is not None:
        outer = facts.span(facts.trace.sites[call.site].caller)
        node = None if outer is None else facts.names.syntax.node(outer)
        named = argument_of(facts, span.file, function, node, given.id) if isinstance(node, ast.Call) else None
        given = named or default_of(function, given.id)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
