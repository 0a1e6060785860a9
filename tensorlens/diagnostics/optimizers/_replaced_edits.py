"""Makes the edits for an optimizer that holds old parameters: a write into them, another order, gradients passed on."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import block_around, statement_at
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.naming.variables import assigned_in, read_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.replaced_parameters import ReplacedParameter
from tensorlens.analysis.training.timeline import Training
from tensorlens.diagnostics.optimizers._remade import takes_new_parameters
from tensorlens.diagnostics.shared.edits.scopes import beside, lines_of_frame, names_in
from tensorlens.diagnostics.shared.edits.statements import inserted_after, moved_after
from tensorlens.diagnostics.shared.edits.writes import copied_into
from tensorlens.records.model import Call, Span
from tensorlens.records.observations import Step
from tensorlens.records.report import Edit

_PARAMETER = ("Parameter", "nn.Parameter", "torch.nn.Parameter")


def written_into(facts: TraceIndex, site: int | None, target: str) -> Edit | None:
    """Turns `layer.weight = nn.Parameter(values)` into a write of the values into the parameter that is there."""
    span = facts.span(site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    value = statement.value
    if plain_name(statement.targets[0]) != target or not isinstance(value, ast.Call):
        return None
    if ast.unparse(value.func) not in _PARAMETER or len(value.args) != 1 or value.keywords:
        return None
    if isinstance(value.args[0], ast.Starred):
        return None
    return copied_into(facts, span.file, statement, value.args[0])


def made_later(training: Training, step: Step, replaced: set[int]) -> tuple[Edit, ...]:
    """Moves the statement that made an optimizer below those that replaced its parameters.

    What is assigned from the optimizer in between, such as a schedule, moves too. Only if the optimizer made no step in
    between, all are in one block of one function, and the moved code draws no random numbers.
    """
    facts, made = training.facts, training.optimizer_call(step)
    last = max(replaced, key=lambda site: _line_in_frame(facts, made, site), default=None)
    places = None if made is None or last is None else lines_of_frame(facts, made.site, last)
    above, below = (facts.span(site) for site in places) if places else (None, None)
    pair = None if above is None or below is None else beside(facts, above, below)
    if made is None or places is None or pair is None or above is None or pair[0].lineno > pair[1].lineno:
        return ()
    if not takes_new_parameters(facts, _call_in(pair[0]), above.file):
        return ()
    if _stepped_before(training, made, replaced) or _draws_random_numbers(facts, places[0]):
        return ()
    block = block_around(facts, above.file, pair[0])
    first, end = (next(n for n, each in enumerate(block) if each is one) for one in pair)
    moved = _dependent(block[first:end])
    if moved is None or names_in(block[end], ast.Load) & _assigned(moved):
        return ()
    if any(_may_read(facts, each, _assigned(moved)) for each in block[first : end + 1] if each not in moved):
        return ()
    edits = [moved_after(facts, above.file, each.lineno, pair[1].lineno) for each in moved]
    if any(edit is None for edit in edits):
        return ()
    both = [edit for edit in edits if edit is not None]
    return *(removed for removed, _ in both), Edit(both[0][1].span, "".join(added.text for _, added in both))


def _line_in_frame(facts: TraceIndex, made: Call | None, site: int) -> int:
    places = None if made is None else lines_of_frame(facts, made.site, site)
    span = None if places is None else facts.span(places[1])
    return 0 if span is None else span.line


def _dependent(block: list[ast.stmt]) -> list[ast.stmt] | None:
    """Returns the first statement of a block and those that read what it assigns to; None if one is no assignment, or
    another statement assigns to what they read."""
    moved = [block[0]]
    for statement in block[1:]:
        if names_in(statement, ast.Load) & _assigned(moved):
            moved.append(statement)
        elif assigned_in(statement) & read_in(*moved):
            return None
    simple = all(isinstance(each, ast.Assign) for each in moved)
    return moved if simple and _assigned(moved) else None


def _call_in(statement: ast.stmt) -> ast.AST | None:
    return statement.value if isinstance(statement, ast.Assign) else None


def _may_read(facts: TraceIndex, statement: ast.stmt, names: set[str]) -> bool:
    """Returns whether a statement calls a function of the program that reads one of some names, itself or in a function
    that it calls."""
    last = {name.rpartition(".")[2] for name in names}
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    reading = set[str]()
    while more := {each.name for each in functions if _mentions(each) & (last | reading)} - reading:
        reading |= more
    called = {last_name(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)}
    return not called.isdisjoint(reading)


def _mentions(function: ast.AST) -> set[str]:
    return {last_name(node) for node in ast.walk(function)}


def _assigned(statements: list[ast.stmt]) -> set[str]:
    return set[str]().union(*(names_in(each, ast.Store) for each in statements))


def _draws_random_numbers(facts: TraceIndex, line: int) -> bool:
    """Returns whether calls that a line led to make parameters or random values."""
    calls = (call for call in facts.calls if call.op == "nn.Parameter" or "init." in call.op or "rand" in call.op)
    return any(facts.same_line(site, line) for call in calls for site in facts.call_chain(call.site))


def _stepped_before(training: Training, made: Call, replaced: set[int]) -> bool:
    """Returns whether the optimizer made a step before the last of some lines replaced its parameters."""
    facts = training.facts
    runs = [change.index for change in facts.trace.assignments if change.site in replaced]
    runs += [call.index for call in facts.calls if call.site in replaced]
    parameters = {access.tensor for access in made.inputs}
    steps = (step for step in training.steps if step.index > made.index and parameters & set(step.parameters))
    first = next(steps, None)
    return not runs or (first is not None and first.index < max(runs))


def gradients_passed_on(training: Training, group: list[ReplacedParameter]) -> Edit | None:
    """Lets the parameters of a copy add their gradients to those of the originals, below `copy = deepcopy(model)`.

    Only if each copy had one backward pass: another pass may be one of the copy's own training.
    """
    facts, span = training.facts, training.facts.span(group[0].site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    fills = [sum(m.kind == "fill" for m in training.moments.get(replaced.new, ())) for replaced in group]
    value, target = statement.value, plain_name(statement.targets[0])
    if max(fills) > 1 or target is None or not isinstance(value, ast.Call) or len(value.args) != 1:
        return None
    original = plain_name(value.args[0])
    if original is None or original == target or not ast.unparse(value.func).endswith("deepcopy"):
        return None
    if any(name in names_in(statement, ast.Load) for name in ("original", "copied")) or not _are_modules(facts, span):
        return None
    return inserted_after(
        facts,
        span.file,
        span.line,
        f"for original, copied in zip({original}.parameters(), {target}.parameters()):\n"
        "    copied.register_post_accumulate_grad_hook(\n"
        "        lambda p, q=original: setattr(q, 'grad', p.grad if q.grad is None else q.grad + p.grad)\n"
        "    )",
    )


def _are_modules(facts: TraceIndex, span: Span) -> bool:
    """Returns whether a line copies a module: it makes more than one parameter, or copies of attributes."""
    made = [call for call in facts.calls if call.op == "nn.Parameter" and facts.span(call.site) == span]
    return len(made) > 1
