"""Finds backward passes that a script makes in eval mode to look at gradients, and that a later step uses as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlens.analysis.code_around import block_around, function_around, is_inside, statement_around, upwards
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.measuring_clips import only_measures
from tensorlens.analysis.training.timeline import GRAD_READ, GRAD_SET, Moment, Training
from tensorlens.records.model import Backward, Call, Span
from tensorlens.records.observations import Step

_MIN_STEPS = 2
_SCALING = ("mul", "div", "unscale")  # of the gradient after the passes: clipping, the loss scale, a count


@dataclass(frozen=True, slots=True)
class EvaluatingPass:
    """A pass of one line, before whose gradients an optimizer has stepped, and to which passes of another line add."""

    first: Backward
    other: Backward
    step: Step  # uses the sum
    read: int | None  # the line that reads the gradients of the first pass
    switched: Span  # `model.eval()`
    steps: int  # that use such sums
    total: int  # steps that use gradients of the other line
    parameters: tuple[int, ...]


@dataclass(slots=True)
class _Line:
    """The steps that use gradients of one line that evaluates, by the index of the step."""

    rounds: dict[int, _Round]
    leaves: dict[int, None]


@dataclass(frozen=True, slots=True)
class _Round:
    """The passes that filled one leaf since it was cleared, and the step that used them."""

    fills: list[Backward]
    step: Step
    is_kept: bool  # nothing changes the gradient of the first line's passes, and later only a number scales the sum

    @property
    def first(self) -> int:
        """The number of passes of the first line, before those of others."""
        site = self.fills[0].site
        return next((place for place, each in enumerate(self.fills) if each.site != site), len(self.fills))


def evaluating_passes(training: Training) -> Iterator[EvaluatingPass]:
    """Yields these passes, one for each line.

    Such a pass is the first one after the gradients were cleared. A step comes before its line in the source, or a loop
    around the step does not have it, so that it belongs to no step. A line that always runs before it switches a module
    to eval mode, and the program switches this module back. The script looks at the gradients and clears nothing.
    """
    lines: dict[int, _Line] = {}
    alone: dict[int, set[int]] = {}  # the line of a pass: the steps that use passes of this line only
    later = set[int]()  # lines of passes that add to gradients of another line
    for number in training.stepped:
        for each in _rounds(training.facts, training.moments.get(number, ())):
            sites = [fill.site for fill in each.fills]
            later.update(sites[each.first :])
            if len(set(sites)) == 1:
                alone.setdefault(sites[0], set()).add(each.step.index)
            elif each.is_kept:
                line = lines.setdefault(sites[0], _Line({}, {}))
                line.rounds[each.step.index] = each
                line.leaves[number] = None
    for site, line in lines.items():
        found = list(line.rounds.values())
        others = {fill.site for each in found for fill in each.fills[each.first :]}
        steps = set[int]().union(*(alone.get(other, ()) for other in others))
        switched = _switched(training.facts, site, found[0])
        if len(found) < _MIN_STEPS or site in later.union(alone) or not steps - set(line.rounds) or switched is None:
            continue
        reads = [_read(training, set(line.leaves), *each.fills[each.first - 1 : each.first + 1]) for each in found]
        if all(read is not None for read in reads):
            one, total = found[0], len(steps | set(line.rounds))
            yield EvaluatingPass(
                one.fills[0], one.fills[one.first], one.step, reads[0], switched, len(found), total, tuple(line.leaves)
            )


def _rounds(facts: TraceIndex, moments: Sequence[Moment]) -> Iterator[_Round]:
    """Yields the passes that filled a leaf since it was cleared, for each step that used them."""
    fills: list[Backward] = []
    is_clear, is_kept = False, True
    for moment in moments:
        if moment.kind == "fill" and isinstance(moment.event, Backward):
            if moment.fresh:
                fills, is_clear, is_kept = [], True, True
            fills.append(moment.event)
        elif moment.kind == "touch":
            is_alone = len({each.site for each in fills}) < 2
            is_kept &= isinstance(moment.event, Call) and _keeps(facts, moment.event, is_alone)
        else:
            if moment.kind == "update" and isinstance(moment.event, Step) and moment.fresh and fills and is_clear:
                yield _Round(fills, moment.event, is_kept)
            fills, is_clear, is_kept = [], moment.kind == "clear", True


def _keeps(facts: TraceIndex, call: Call, is_alone: bool) -> bool:
    """Returns whether a change of the gradient leaves the share of each pass in it: a number scales the sum."""
    if call.op == GRAD_SET:
        return False
    return only_measures(facts, call.site) if is_alone else any(name in op_name(call) for name in _SCALING)


def _read(training: Training, leaves: set[int], first: Backward, other: Backward) -> int | None:
    """Returns the line that computes with gradients of a pass before the next pass adds to them."""
    owners = training.gradient_of
    for call in training.facts.calls_between(first.index, other.started):
        is_used = call.op not in (GRAD_READ, GRAD_SET) and not call.within
        if is_used and any(owners.get(access.tensor) in leaves for access in call.inputs):
            return call.site
    return None


# --- where the passes are in the source -----------------------------------------------------------------------------


def _switched(facts: TraceIndex, site: int, found: _Round) -> Span | None:
    """Returns the call of `eval()` that runs before each pass of a line outside of the steps; None: there is none."""
    step, chain = found.step.site, facts.call_chain(site)
    if step is None:
        return None
    for place, one in enumerate(chain):
        others = [facts.site_in(facts.scope(one), each) for each in (found.fills[-1].site, step)]
        if None not in others:
            begin = _begin(facts, one, step, *(each for each in others if each is not None))
            if begin is None:
                return None
            inner = (_eval_before(facts, each, 0) for each in chain[:place])
            return next((call for call in (*inner, _eval_before(facts, one, begin)) if call is not None), None)
    return None


def _begin(facts: TraceIndex, site: int, made: int, other: int, step: int) -> int | None:
    """Returns the line of a function after which a pass of it is outside of its step; None: it is inside.

    Where a condition chooses the turns of a loop that step, a pass before the loop may belong to a later turn.
    """
    passed, added, stepped = (facts.trace.sites[each].span for each in (site, other, step))
    if added.line <= stepped.line < passed.line:
        return stepped.line
    function = function_around(facts, passed.file, passed.line)
    scope = function or facts.tree(passed.file)
    spans = [facts.span_of(each, passed.file) for each in ast.walk(scope) if isinstance(each, ast.For | ast.While)]
    for loop in spans:
        is_above = is_inside(added, loop) and is_inside(stepped, loop) and passed.line < loop.line
        if is_above and _is_always_made(facts, made, step):
            outer = (each.line for each in spans if is_inside(passed, each) and is_inside(loop, each))
            return max(outer, default=0 if function is None else function.lineno)
    return None


def _is_always_made(facts: TraceIndex, made: int, step: int) -> bool:
    """Returns whether no condition decides to step, or to call one of the functions between a line and the step."""
    chain = facts.call_chain(made)
    for site in chain[: chain.index(step) + 1]:
        span = facts.trace.sites[site].span
        statement = statement_around(facts, span)
        for each in () if statement is None else upwards(facts, span.file, statement):
            if isinstance(each, ast.If):
                return False
            if isinstance(each, ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef):
                break
    return True


def _eval_before(facts: TraceIndex, site: int, begin: int) -> Span | None:
    """Returns the last statement `model.eval()` above a line in the blocks around it, and below line `begin`, unless
    one `model.train()` comes between."""
    span = facts.trace.sites[site].span
    statement = statement_around(facts, span)
    if statement is None:
        return None
    for outer in upwards(facts, span.file, statement):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        for each in reversed(block_around(facts, span.file, outer)):
            if begin < each.lineno <= outer.lineno and each is not outer and isinstance(each, ast.Expr):
                mode = _mode(each.value)
                if mode is not None and isinstance(each.value, ast.Call):
                    is_trained = not mode and _is_trained(facts, each.value)
                    return facts.span_of(each.value, span.file) if is_trained else None
    return None


def _mode(node: ast.AST) -> bool | None:
    """Returns whether a call switches a module to training mode; None: it switches none."""
    name = called_name(node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or name not in ("eval", "train"):
        return None
    given = [*node.args, *(each.value for each in node.keywords)]
    return name == "train" and not any(isinstance(each, ast.Constant) and each.value is False for each in given)


def _is_trained(facts: TraceIndex, switch: ast.Call) -> bool:
    """Returns whether the program switches a module of the same name to training mode: a teacher stays in eval mode."""
    calls = (node for _, tree in facts.trees() for node in ast.walk(tree) if _mode(node))
    return any(_holder(node) == _holder(switch) for node in calls)


def _holder(node: ast.AST) -> str:
    """Returns the last part of the name whose method a call calls: `model` of `trainer.model.eval()`."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return last_name(node.func.value) if is_method else ""  # type: ignore[attr-defined]
