"""Names parts of a computed tensor that nothing reads, as one of the two that `chunk(2, dim=1)` returns."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import stored_pairs
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.rows_and_dimensions.feature_axes import are_features
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.unseen_reads import may_be_read_unseen
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, ordinal
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_SPLITTING = frozenset("chunk split split_with_sizes tensor_split unbind hsplit vsplit dsplit".split())
_SLICING = frozenset(("getitem", "narrow", "select"))
_UNUSED = frozenset("unused dummy ignored ignore rest dropped".split())
_SPREADS = frozenset("var logvar variance std logstd sigma logsigma spread scale precision logvariance cov".split())
_DRAWING = frozenset("randn randn_like normal rand rand_like standard_normal bernoulli uniform_ normal_".split())
_RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))  # return the states of several layers
_MIN_RUNS = 2
_MOST = 8  # parts


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of one tensor, and the calls that make them: one, or one for each part."""

    calls: tuple[Call, ...]
    numbers: tuple[int, ...]


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parts that no call reads in any run of the line, while other parts are read each time."""
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    sites: dict[tuple[int, ...], list[_Parts]] = defaultdict(list)
    for parts in (*_split(facts), *_sliced(facts)):
        sites[tuple(call.site for call in parts.calls)].append(parts)
    read = {access.tensor for call in facts.calls for access in call.inputs} if sites else set[int]()
    for runs in sites.values():
        if len(runs) < _MIN_RUNS or len({len(parts.numbers) for parts in runs}) != 1:
            continue
        unread = _unread(runs, read)
        first = runs[0].calls[0]
        leaves = graph_leaves(facts, first.inputs[0].tensor, first.index)
        rows = [row for row in training.rows if row.tensor in leaves and row.is_stepped]
        if rows and len(unread) == 1 and _is_forgotten(facts, runs[0], unread[0]):
            yield _sentence(facts, runs, unread[0], rows)


def _is_forgotten(facts: TraceIndex, parts: _Parts, place: int) -> bool:
    """Returns whether a part is one of the features that a layer makes, and the program has no reason to leave it.

    A spread counts if a line draws numbers later, as those that it should scale: a policy or an autoencoder can be
    trained by its mean alone.
    """
    first, number = parts.calls[0], parts.numbers[place]
    if _may_be_read(facts, parts, place) or not are_features(facts, first.inputs[0].tensor, first.index, number):
        return False
    if not _SPREADS & set(words_of(facts.name(number, first.index))):
        return True
    later = next((each.index for each in facts.backwards if each.index > first.index), None)
    return later is not None and any(op_name(call) in _DRAWING for call in facts.calls_between(first.index, later))


def _may_be_read(facts: TraceIndex, parts: _Parts, place: int) -> bool:
    """Returns whether a line may show or store a part without a call, or a function returns it for its callers."""
    call = parts.calls[0] if len(parts.calls) == 1 else parts.calls[place]
    return may_be_read_unseen(facts, call, place if len(parts.calls) == 1 else None, if_returned=True)


def _sentence(facts: TraceIndex, runs: list[_Parts], unread: int, rows: list[ParameterRow]) -> StandingOut:
    calls, count = runs[0].calls, len(runs[0].numbers)
    behind = f"{count} parts of what is computed from {listed(rows)}"
    if len(calls) == 1:
        call = calls[0]
        text = (
            f"{as_written(facts, call)} makes {behind}, and no line reads the {ordinal(unread + 1)} one in any of its "
        )
    else:
        call = calls[unread]
        text = f"{as_written(facts, call)} is one of {behind}, and no line reads it in any of its "
    label = facts.label("value_made_here", call.site, "one of the parts is unused", call.index)
    return stands_out(f"{text}{len(runs):,} runs", label)


def _split(facts: TraceIndex) -> Iterator[_Parts]:
    """Yields what calls split that return several parts."""
    for call in facts.calls:
        is_split = op_name(call) in _SPLITTING and _are_named(facts, call)
        if is_split and call.nodes[1] > call.nodes[0] and 1 < len(call.outputs) <= _MOST:
            yield _Parts((call,), tuple(access.tensor for access in call.outputs))


def _are_named(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a statement gives each part a name that is to be used."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(call.outputs) or not call.inputs:
        return False
    return all(map(_is_to_be_used, target.elts)) and not _is_state(facts, call.inputs[0].tensor, call.index)


def _is_state(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a recurrent layer made a tensor: the state of the last of its layers is often all that counts."""
    made = next(iter(facts.producers(number, before)), None)
    return made is not None and op_name(made) in _RECURRENT


def _is_to_be_used(target: ast.expr) -> bool:
    is_name = isinstance(target, ast.Name) and not target.id.startswith("_")
    return is_name and not _UNUSED & set(words_of(target.id))  # type: ignore[attr-defined]


def _sliced(facts: TraceIndex) -> Iterator[_Parts]:
    """Yields slices that make up a tensor which nothing else reads, each with a name of its own."""
    readers: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        for access in call.inputs:
            readers[access.tensor].append(call)
    known: dict[int, bool] = {}
    for number, calls in readers.items():
        if not 1 < len(calls) <= _MOST or not all(_is_slice(call) for call in calls):
            continue
        for call in calls:
            if call.site not in known:
                known[call.site] = _is_named_slice(facts, call)
        if not all(known[call.site] for call in calls) or _is_state(facts, number, calls[0].index):
            continue
        numbers = tuple(call.outputs[0].tensor for call in calls)
        sizes = [prod(facts.tensor(part).shape) for part in numbers]
        is_of_sites = len({call.site for call in calls}) == len(calls)
        if is_of_sites and min(sizes) > 0 and sum(sizes) == prod(facts.tensor(number).shape):
            yield _Parts(tuple(calls), numbers)


def _is_slice(call: Call) -> bool:
    has_graph = call.nodes[1] > call.nodes[0]
    return op_name(call) in _SLICING and has_graph and len(call.inputs) == 1 and bool(call.outputs)


def _is_named_slice(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a statement gives a slice, or each of several slices, a name."""
    span = facts.span(call.site)
    statement, node = (None, None) if span is None else (statement_around(facts, span), facts.names.syntax.node(span))
    pairs = stored_pairs(statement) if isinstance(statement, ast.Assign) else iter(())
    return any(value is node and _is_to_be_used(target) for target, value in pairs)


def _unread(runs: list[_Parts], read: set[int]) -> list[int]:
    """Returns the places of the parts that no run of a line has read; none if others were not read in each run."""
    counts = [sum(parts.numbers[n] in read for parts in runs) for n in range(len(runs[0].numbers))]
    return [n for n, count in enumerate(counts) if not count] if set(counts) <= {0, len(runs)} else []
