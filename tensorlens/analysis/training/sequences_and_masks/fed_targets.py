"""Finds decoders that run step by step and are given, at a step, the id that is the target of the same step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.naming.variables import assigned_in, read_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.sequences_and_masks.own_targets import ids_key
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.records.model import Call

_LOSSES = ("cross_entropy", "nll_loss")
_JOINING = frozenset(("stack", "cat", "concat"))
_SHAPES = frozenset("view reshape flatten contiguous transpose permute mT T t log_softmax unsqueeze squeeze".split())
_CELLS = frozenset("lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell lstm gru rnn_tanh rnn_relu".split())
_LAYERS = frozenset("linear matmul mm".split())
_PICKING = frozenset("argmax max topk multinomial".split())
_HIDING = frozenset("mul rmul where masked_fill lerp".split())
_RANDOM = re.compile("rand|normal|bernoulli|dropout|multinomial|sample")
_MAX_ABOVE, _MAX_LOSSES, _MAX_VIEWS, _MAX_LOOKUPS = 200, 3, 8, 200
_FROM_START = re.compile(r"(?::, *)*(\d+):(?:, *:)*")


@dataclass(frozen=True, slots=True)
class FedTarget:
    """The call that takes the ids of one step out of the targets, the look-up that they are given to, and the loss."""

    taken: Call
    lookup: Call
    loss: Call


@dataclass(frozen=True, slots=True)
class _Step:
    """The result of a decoder at one step: `place` is the index by which it is kept, None for the items of a list."""

    logits: int
    before: int
    place: str | None
    number: int
    since: int  # it was computed after this event
    kept: Call  # in each round, this line makes or keeps a result


def fed_targets(facts: TraceIndex) -> Iterator[FedTarget]:
    """Yields these steps, one for each line that takes the ids."""
    reported = set[int]()
    for backward in examined_passes(facts):
        losses = [c for c in recorded_above(facts, backward) if op_name(c) in _LOSSES and len(c.inputs) == 2]
        for loss in losses[:_MAX_LOSSES]:
            found = _found(facts, loss)
            if found is not None and found.taken.site not in reported:
                reported.add(found.taken.site)
                yield found


def _found(facts: TraceIndex, loss: Call) -> FedTarget | None:
    logits, target = (access.tensor for access in loss.inputs)
    own = _taken(facts, target, loss.index)
    if own is not None:
        earlier = [call.index for call in facts.calls if call.site == loss.site and call.index < loss.index]
        step = _Step(logits, loss.index, None, 0, max(earlier, default=-1), loss)
        fed = _fed(facts, step)
        return FedTarget(*fed, loss) if fed is not None and _is_same(facts, fed[0], own) else None
    key = ids_key(facts, target, loss.index, with_copies=False)
    for step, parts, count in _steps(facts, logits, loss.index):
        fed = _fed(facts, step) if step.number else None  # at the first step, an earlier loop may have read the ids
        if fed is None:
            continue
        base, start = _base(facts, fed[0]), _start(facts, fed[0])
        is_whole = key == (base[0], (*parts, *base[1])) if step.place is not None else _is_from(key, base, start)
        index = _index(facts, fed[0])
        if step.place is not None:
            return FedTarget(*fed, loss) if is_whole and index == step.place else None
        sizes = facts.tensor(fed[0].inputs[0].tensor).shape
        if is_whole and start is not None and count == sizes[_dimension(index)] - start:
            return FedTarget(*fed, loss)
        return None
    return None


def _is_same(facts: TraceIndex, taken: Call, own: Call) -> bool:
    """Returns whether two calls take the same ids of the same tensor in one round of a loop."""
    spans = [facts.span(call.site) for call in (taken, own)]
    loops = [None if span is None else loop_around_line(facts, span.file, span.line) for span in spans]
    is_one = loops[0] is not None and loops[0] is loops[1]
    return is_one and _index(facts, taken) == _index(facts, own) and _base(facts, taken) == _base(facts, own)


def _is_from(key: tuple[int, tuple[str, ...]], base: tuple[int, tuple[str, ...]], start: int | None) -> bool:
    """Returns whether a target is that of all steps from a number on."""
    if key == base:
        return start == 0
    match = _FROM_START.fullmatch(key[1][0].strip("()")) if key[1] else None
    return match is not None and (key[0], key[1][1:]) == base and int(match[1]) == start


def _steps(facts: TraceIndex, number: int, before: int) -> Iterator[tuple[_Step, tuple[str, ...], int]]:
    """Yields the steps that some logits consist of, with the part of them that a loss takes, and how many there are."""
    parts: list[str] = []
    for _ in range(_MAX_VIEWS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return
        if op_name(made) in _JOINING and len(made.inputs) > 1:
            rows = [access.tensor for access in made.inputs]
            kept = [call for row in rows for call in [*facts.producers(row, made.index)][:1]]
            ends = [call.index for call in kept]
            if not parts and len(ends) == len(rows) and _are_rounds(facts, kept):
                for at, row in enumerate(rows):
                    yield _Step(row, made.index, None, at, ends[at - 1] if at else -1, kept[at]), (), len(rows)
            return
        if op_name(made) == "setitem" and made.writes:
            yield from _stored_steps(facts, number, before, tuple(parts))
            return
        if op_name(made) == "getitem" and len(made.inputs) == 1:
            node = facts.node_at(made.site)
            if not isinstance(node, ast.Subscript):
                return
            parts.append(ast.unparse(node.slice))
        elif op_name(made) not in _SHAPES:
            return
        number, before = made.inputs[0].tensor, made.index


def _are_rounds(facts: TraceIndex, kept: list[Call]) -> bool:
    """Returns whether one line made some results, in rounds that follow each other: a list may also begin with a result
    of a line above the loop, so that each round makes the one of the next step."""
    between = facts.calls_between(kept[0].index, kept[-1].index + 1)
    return [call.index for call in kept] == [call.index for call in between if call.site == kept[0].site]


def _stored_steps(
    facts: TraceIndex, number: int, before: int, parts: tuple[str, ...]
) -> Iterator[tuple[_Step, tuple[str, ...], int]]:
    calls = [call for call in facts.producers(number, before) if op_name(call) == "setitem"]
    for at, call in enumerate(reversed(calls)):
        node = facts.node_at(call.site)
        if isinstance(node, ast.Subscript) and len(call.inputs) == 2:
            since = calls[-at].index if at else -1
            yield (
                _Step(call.inputs[1].tensor, call.index, ast.unparse(node.slice).strip("()"), at, since, call),
                parts,
                len(calls),
            )


def _fed(facts: TraceIndex, step: _Step) -> tuple[Call, Call] | None:
    """Returns the call that takes the ids of a step, or their embeddings, by the variable of a loop, in the same round
    as it gives them to the decoder, and the look-up; None if the ids are others."""
    above = [call for _, call in ancestry(facts, step.logits, step.before, _MAX_ABOVE)]
    lookup = max((c for c in above if op_name(c) == "embedding"), key=lambda call: call.index, default=None)
    taken = None if lookup is None or lookup.index <= step.since else _taken(facts, _ids(facts, lookup), lookup.index)
    user = lookup
    if taken is None:
        parts = [c for c in above if op_name(c) == "getitem" and c.index > step.since and _lookup(facts, c) is not None]
        last = max(parts, key=lambda call: call.index, default=None)
        taken = None if last is None else _taken(facts, last.outputs[0].tensor, last.index + 1)
        lookup = None if last is None else _lookup(facts, last)
        made = set() if taken is None else {access.tensor for access in taken.outputs}
        users = [call for call in above if made & {access.tensor for access in call.inputs}]
        user = min(users, key=lambda call: call.index, default=None)
    if taken is None or lookup is None or user is None or taken.index <= step.since:
        return None
    is_open = _is_decoded(facts, above, (taken, lookup), step)
    is_fed = is_open and _is_in_one_round(facts, taken, user, step) and _is_fed_predictions(facts, lookup, step)
    return (taken, lookup) if is_fed else None


def _is_fed_predictions(facts: TraceIndex, lookup: Call, step: _Step) -> bool:
    """Returns whether a program also looks up ids that it has picked by the results of the same layer: one that
    does not may be meant to find the id again, as a test of what a state keeps."""
    layer, tables = _layer(facts, step.logits, step.before), _tables(facts, lookup)
    others = [call for call in facts.calls if op_name(call) == "embedding" and _tables(facts, call) == tables]
    if layer is None or not facts.requires_grad(layer.inputs[0].tensor, layer.index - 1):
        return False
    for call in others[:_MAX_LOOKUPS]:
        for _, picked in ancestry(facts, _ids(facts, call), call.index, _MAX_VIEWS):
            if op_name(picked) in _PICKING and picked.inputs:
                source = _layer(facts, picked.inputs[0].tensor, picked.index)
                if source is not None and source.inputs[1].tensor == layer.inputs[1].tensor:
                    return True
    return False


def _layer(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the layer that made some results, before any view or softmax of them."""
    above = (call for _, call in ancestry(facts, number, before, 2 * _MAX_VIEWS))
    return next((c for c in above if op_name(c) in _LAYERS and len(c.inputs) > 1), None)


def _tables(facts: TraceIndex, lookup: Call) -> set[int]:
    return {access.tensor for access in lookup.inputs} - {_ids(facts, lookup)}


def _is_decoded(facts: TraceIndex, above: list[Call], fed: tuple[Call, Call], step: _Step) -> bool:
    """Returns whether a cell with a state of an earlier round gets the ids as they are: what is hidden in part, or goes
    through a narrow layer or one with noise, may be found again on purpose."""
    cells = [call for call in above if op_name(call) in _CELLS and call.nodes[1] > call.nodes[0]]
    start = max(fed[0].index, step.since)
    own = [call for call in cells if call.index > start]
    if not own or not any(call.index < start for call in cells):
        return False
    first, round_ = min(call.index for call in own), [call for call in above if call.index > start]
    if any(_RANDOM.search(op_name(call)) for call in round_):
        return False
    if any(op_name(call) in _HIDING and min(fed[1].index, start) < call.index < first for call in above):
        return False
    state, classes = ((0, *facts.tensor(each).shape)[-1] for each in (own[0].outputs[0].tensor, step.logits))
    layers = [call for call in round_ if op_name(call) == "linear" and call.index > first]
    return all((0, *facts.tensor(call.outputs[0].tensor).shape)[-1] >= min(state, classes) for call in layers)


def _ids(facts: TraceIndex, lookup: Call) -> int:
    ids = [a.tensor for a in lookup.inputs if facts.tensor(a.tensor).dtype.startswith("int")]
    return ids[0] if len(ids) == 1 else lookup.inputs[0].tensor


def _lookup(facts: TraceIndex, taken: Call) -> Call | None:
    """Returns the call that looked up the embeddings of which a call takes a step."""
    made = next(iter(facts.producers(taken.inputs[0].tensor, taken.index)), None)
    if made is not None and op_name(made) == "dropout" and made.inputs:
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    return made if made is not None and op_name(made) == "embedding" else None


def _is_in_one_round(facts: TraceIndex, taken: Call, user: Call, step: _Step) -> bool:
    """Returns whether a loop takes ids above the lines that use them and keep a result: below one of these, they are
    for the next round. Each round has to keep one, or the ids may be those of a round that kept none."""
    span = facts.span(taken.site)
    loop = None if span is None else loop_around_line(facts, span.file, span.line)
    if span is None or loop is None or any(isinstance(node, ast.Continue | ast.Try) for node in ast.walk(loop)):
        return False
    lines = [facts.span(facts.site_in(facts.scope(taken.site), call.site)) for call in (user, step.kept)]
    for below in lines:
        if below is None or (below.end_line, below.end_column) < (span.end_line, span.end_column):
            return False
        if loop_around_line(facts, span.file, below.line) is not loop:
            return False
    keeping = [each for each in loop.body if each.lineno <= (lines[1] or span).line <= (each.end_lineno or 0)]
    if not keeping or not isinstance(keeping[-1], ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
        return False
    runs = [call for call in facts.calls_between(step.since + 1, step.kept.index) if call.site == taken.site]
    return len(runs) == 1


def _taken(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that took some ids out of a tensor by the variable of a `for` around it."""
    for _ in range(_MAX_VIEWS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or len(made.inputs) != 1:
            return None
        if op_name(made) == "getitem":
            node, span = facts.node_at(made.site), facts.span(made.site)
            loop = None if span is None else loop_around_line(facts, span.file, span.line)
            if isinstance(node, ast.Subscript) and isinstance(loop, ast.For):
                counts = assigned_in(loop.target) & read_in(node.slice)
                is_set_again = any(counts & assigned_in(each) for each in loop.body)
                if counts and counts == read_in(node.slice) and not is_set_again:
                    return made
        if op_name(made) not in RESHAPING or op_name(made) == "getitem":
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _index(facts: TraceIndex, taken: Call) -> str:
    node = facts.node_at(taken.site)
    return ast.unparse(node.slice).strip("()") if isinstance(node, ast.Subscript) else ""


def _base(facts: TraceIndex, taken: Call) -> tuple[int, tuple[str, ...]]:
    """Returns the ids that a call takes a step of, or of whose embeddings it does."""
    lookup = _lookup(facts, taken)
    if lookup is not None:
        return ids_key(facts, _ids(facts, lookup), lookup.index, with_copies=False)
    return ids_key(facts, taken.inputs[0].tensor, taken.index, with_copies=False)


def _dimension(index: str) -> int:
    """Returns the dimension along which `t`, or `:, t`, takes a step."""
    return 1 if re.fullmatch(r":, *\w+(, *None)?", index) else 0


def _start(facts: TraceIndex, taken: Call) -> int | None:
    """Returns the first number of the loop, if that counts one by one and the index is its variable."""
    span = facts.span(taken.site)
    loop = None if span is None else loop_around_line(facts, span.file, span.line)
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or called_name(loop.iter) != "range":
        return None
    name = loop.target.id if isinstance(loop.target, ast.Name) else ""
    if not re.fullmatch(rf"(:, *)?{name}(, *None)?|(:, *)?{name}:{name} \+ 1", _index(facts, taken)):
        return None
    first = loop.iter.args[0] if len(loop.iter.args) == 2 else ast.Constant(0)
    is_counted = len(loop.iter.args) <= 2 and isinstance(first, ast.Constant) and isinstance(first.value, int)
    return first.value if is_counted and isinstance(first, ast.Constant) else None  # type: ignore[return-value]
