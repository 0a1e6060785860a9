"""Finds models that are made once before a loop over folds, and that each fold trains on.

A loop over folds leaves one part of the rows out, trains on the others, and evaluates on that part. A model that goes
on from one fold to the next has been trained on the rows that it is evaluated on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import loss_calls
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Backward, Call

_FOLDS = frozenset("fold folds kfold".split())
_SERIES = frozenset("series expanding rolling walk online stream federated client clients".split())
_RESETS = frozenset("load_state_dict apply deepcopy copy_".split())
_TAKES = frozenset("getitem index_select".split())
_MAX_VALUES = 300
_CUTS = frozenset("getitem index_select split chunk unbind narrow to long cpu".split())
_SIDES, _MAX_CUTS, _DEEP = 2, 20, 3
_REST = frozenset("delete setdiff1d difference".split())


@dataclass(frozen=True, slots=True)
class FoldLoop:
    """A loop over folds that trains parameters made before it, and evaluates them."""

    file: str
    loop: ast.For
    row: ParameterRow
    made: int  # the site that made the parameter, or the one that called its constructor
    trained: int  # the site of a backward pass
    evaluated: Call


def fold_loops(training: MeasuredTraining) -> Iterator[FoldLoop]:
    """Yields these loops."""
    facts = training.facts
    for file, tree in facts.trees():
        if _SERIES & set(words_of(facts.trace.sources[file])):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.For) and _is_over_folds(node, tree):
                found = _found(training, file, node)
                if found is not None:
                    yield found


def _is_over_folds(loop: ast.For, tree: ast.Module) -> bool:
    """Returns whether a loop goes over folds, of which each is left out once, and runs to its end."""
    header = f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}"
    if not _FOLDS & set(words_of(header)) or any(isinstance(each, ast.Break | ast.Return) for each in ast.walk(loop)):
        return False
    called = {last_name(node.func) for node in ast.walk(loop) if isinstance(node, ast.Call)}
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name in called]
    called |= {last_name(node.func) for each in functions for node in ast.walk(each) if isinstance(node, ast.Call)}
    if called & _RESETS or any("reset" in name or "init" in name for name in called):
        return False
    return any(_takes_rest(each) for each in (loop, *functions)) or "KFold" in ast.unparse(tree)


def _is_of_others(test: ast.AST, own: set[str], numbers: set[str] | None) -> bool:
    """Returns whether an expression compares names, one of the inner loop, the other of a loop: `j != fold`.

    Without numbers of inner loops, the other name is a tensor of the folds of all rows.
    """
    for each in ast.walk(test):
        if isinstance(each, ast.Compare) and len(each.ops) == 1 and isinstance(each.ops[0], ast.NotEq):
            sides = [side.id for side in (each.left, each.comparators[0]) if isinstance(side, ast.Name)]
            if len(sides) == len(set(sides)) == _SIDES and (
                len(set(sides) & own) == 1 if numbers is None else bool(set(sides) & own) and set(sides) <= numbers
            ):
                return True
    return False


def _targets(scope: ast.AST) -> set[str]:
    """Returns the names that the loops and comprehensions of code, and it itself, give to each round."""
    loops = [each.target for each in ast.walk(scope) if isinstance(each, ast.For | ast.comprehension)]
    return {each.id for target in loops for each in ast.walk(target) if isinstance(each, ast.Name)}


def _takes_rest(scope: ast.AST) -> bool:
    """Returns whether code takes all parts but one: `j != fold`, `cat([rows[:a], rows[b:]])`, `np.delete()`."""
    numbers = _targets(scope)
    for node in ast.walk(scope):
        if isinstance(node, ast.comprehension):
            own = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
            if any(_is_of_others(each, own, numbers) for each in node.ifs):
                return True
        if isinstance(node, ast.For) and node is not scope:
            inner = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
            tests = [each.test for each in ast.walk(node) if isinstance(each, ast.If)]
            if any(_is_of_others(each, inner, numbers) for each in tests) and _is_inner(scope, node):
                return True
        if isinstance(node, ast.Subscript) and _is_of_others(node.slice, numbers, None):
            return True
        if not isinstance(node, ast.Call):
            continue
        if last_name(node.func) in _REST:
            return True
        slices = [each.slice for each in ast.walk(node) if isinstance(each, ast.Subscript)]
        ends = {(each.lower is None, each.upper is None) for each in slices if isinstance(each, ast.Slice)}
        if last_name(node.func) in ("cat", "concatenate", "concat") and {(True, False), (False, True)} <= ends:
            return True
    return False


def _is_inner(scope: ast.AST, loop: ast.For) -> bool:
    """Returns whether a loop is in another one of the same code."""
    outer = [each for each in ast.walk(scope) if isinstance(each, ast.For) and each is not loop]
    return any(loop is node for each in outer for node in ast.walk(each))


def _found(training: MeasuredTraining, file: str, loop: ast.For) -> FoldLoop | None:
    """Returns the facts if the loop trains a parameter that was made once before it, and that no line writes since."""
    facts = training.facts
    passes = {event.site for event in facts.backwards if _is_within(facts, event.site, file, loop)}
    rows = [row for row in training.rows if row.is_stepped and set(row.passes) & passes]
    if not rows or any(not set(row.passes) <= passes for row in rows):
        return None
    made = {row.tensor: facts.creator(row.tensor) for row in rows}
    if any(call is None or _is_within(facts, call.site, file, loop) for call in made.values()):
        return None
    if any(facts.times_run(call.site, call.index)[1] > 1 for call in made.values() if call is not None):
        return None
    if any(training.writes(row.tensor) for row in rows):
        return None
    evaluated = _evaluated(training, {row.tensor for row in rows}, file, loop)
    used = set() if evaluated is None else {access.tensor for access in evaluated.inputs}
    row = next((row for row in rows if row.tensor in used), None)
    call = None if row is None else made[row.tensor]
    if evaluated is None or call is None or row is None:
        return None
    outer = [call.site, *callers(facts.trace, call.site)]
    place = next((site for site in reversed(outer) if facts.trace.sites[site].targets), call.site)
    return FoldLoop(file, loop, row, place, next(iter(passes)), evaluated)


def _evaluated(training: MeasuredTraining, parameters: set[int], file: str, loop: ast.For) -> Call | None:
    """Returns a call without gradients, below the training in the loop, that runs the model on rows of its table."""
    facts = training.facts
    passes = [each for each in facts.backwards if _is_within(facts, each.site, file, loop)]
    first, trained = passes[0].index, max(_place(facts, each.site, file, loop) for each in passes)
    tables = [_tables(facts, call, parameters) for call in loss_calls(facts, passes[0])]
    for call in facts.calls:
        if call.mode == "grad" or call.within or call.index < first:
            continue
        is_run = any(access.tensor in parameters for access in call.inputs)
        if is_run and _place(facts, call.site, file, loop) > trained:
            if not _goes_on(passes, parameters & {access.tensor for access in call.inputs}, call.index):
                continue
            own = _tables(facts, call, parameters)
            is_same = any(own.keys() & each.keys() for each in tables)
            return call if is_same and not _is_trained(facts, own, call.index, parameters, passes) else None
    return None


def _goes_on(passes: list[Backward], used: set[int], evaluated: int) -> bool:
    """Returns whether passes train a parameter before an evaluation and in a later fold: there may be a model for
    each fold, all made before the loop."""
    before, after = (
        {change.tensor for each in passes for change in each.gradients if (each.index > evaluated) == is_later}
        for is_later in (False, True)
    )
    return bool(used & before & after)


def _is_trained(
    facts: TraceIndex, own: dict[int, Call], before: int, parameters: set[int], passes: list[Backward]
) -> bool:
    """Returns whether an index of evaluated rows may be the one that the batches of the last passes were cut from."""
    for last in [each for each in passes if each.index < before][-1:]:
        for loss in loss_calls(facts, last):
            for table, take in _tables(facts, loss, parameters).items():
                if table in own and _may_be_cut(facts, take, own[table]):
                    return True
    return False


def _may_be_cut(facts: TraceIndex, take: Call, whole: Call) -> bool:
    """Returns whether two calls may take rows by indices cut from one; true if the second one's are not fewer."""
    if len(take.inputs) != _SIDES or len(whole.inputs) != _SIDES:
        return True
    ours, theirs = (_cut_from(facts, each) for each in (take, whole))
    if any(_are_alike(facts, one, other) for one in ours for other in theirs):
        return True
    kinds = {facts.tensor(each[-1][0]).dtype for each in (ours, theirs)}
    return len(kinds) > 1 or _rows(facts, whole, theirs[0][0]) >= _rows(facts, take, ours[-1][0])


def _cut_from(facts: TraceIndex, take: Call) -> list[tuple[int, int]]:
    """Returns the index of a call that takes rows, and those it was cut from, the last of them at the end."""
    found = [(take.inputs[1].tensor, take.index)]
    for _ in range(_MAX_CUTS):
        made = next(iter(facts.producers(*found[-1])), None)
        if made is None or op_name(made) not in _CUTS or not made.inputs:
            break
        found.append((made.inputs[0].tensor, made.index))
    return found


def _rows(facts: TraceIndex, take: Call, index: int) -> int:
    """Returns how many rows an index takes, for a mask those that its call has taken."""
    is_mask = "bool" in facts.tensor(index).dtype
    shape = facts.tensor(take.outputs[0].tensor if is_mask else index).shape
    return shape[0] if shape else 0


def _are_alike(facts: TraceIndex, one: tuple[int, int], other: tuple[int, int], deep: int = _DEEP) -> bool:
    """Returns whether two tensors are one, or were made alike."""
    first, second = (next(iter(facts.producers(*each)), None) for each in (one, other))
    if one[0] == other[0] or first is second is not None:
        return one[0] == other[0]
    if first is None or second is None or not deep or op_name(first) != op_name(second):
        return False
    pairs = list(zip(first.inputs, second.inputs, strict=False))
    return len(first.inputs) == len(second.inputs) != 0 and all(
        _are_alike(facts, (a.tensor, first.index), (b.tensor, second.index), deep - 1) for a, b in pairs
    )


def _tables(facts: TraceIndex, call: Call, parameters: set[int]) -> dict[int, Call]:
    """Returns the tensors that a call, or those before it, take rows of, with the calls that take them."""
    waiting, seen = [(access.tensor, call.index) for access in call.inputs], set[int]()
    found: dict[int, Call] = {}
    for number, before in waiting:
        if number in parameters or number in seen or len(seen) > _MAX_VALUES:
            continue
        seen.add(number)
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            continue
        if op_name(made) in _TAKES:
            found[made.inputs[0].tensor] = made
        else:
            waiting += [(access.tensor, made.index) for access in made.inputs]
    return found


def _place(facts: TraceIndex, site: int, file: str, loop: ast.For) -> int:
    """Returns the number of the statement of a loop that a site, or a line that called its function, is in; or -1."""
    for each in (site, *callers(facts.trace, site)):
        span = facts.span(each)
        for place, node in enumerate(loop.body):
            if span is not None and span.file == file and node.lineno <= span.line <= (node.end_lineno or 0):
                return place
    return -1


def _is_within(facts: TraceIndex, site: int, file: str, loop: ast.For) -> bool:
    """Returns whether a site, or a line that called its function, is in a loop."""
    for each in (site, *callers(facts.trace, site)):
        span = facts.span(each)
        if span is not None and span.file == file and loop.body[0].lineno <= span.line <= (loop.end_lineno or 0):
            return True
    return False
