"""Names lines that change a tensor in place by one variable, where another variable of the tensor is read afterwards.

So it is where `noisy = x` and `noisy += noise` are to leave `x`, the target of the loss, as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around, statement_at
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Label, StandingOut

_MAX_CALLS = 64  # after the change, until both variables are read
_MAX_NEAR = 4  # calls of `x[i] += y`: it reads, adds and assigns
_COLLECTIONS = frozenset("dict list defaultdict OrderedDict Counter float int".split())
_OF_FORM = frozenset("expand_as view_as reshape_as type_as".split())  # they take the form of their argument
_NO_TENSORS = ast.Constant | ast.Dict | ast.DictComp | ast.List | ast.ListComp | ast.Tuple
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, seen, said = training.facts, set[int](), set[tuple[str, int]]()
    if not training.measured.steps:
        return
    for place, call in enumerate(facts.calls):
        if not call.writes or call.within or call.site in seen:
            continue
        seen.add(call.site)
        span = facts.span(call.site)
        statement = None if span is None else statement_at(facts, span.file, span.line)
        name = None if statement is None else _changed(statement)
        if span is None or statement is None or name is None:
            continue
        scope = scope_around(facts, span.file, span.line)
        alias = _alias(scope, name, statement) or _second_name(scope, name, statement)
        if alias is None or (span.file, statement.lineno) in said:
            continue
        readers = _readers(facts, place, (name, _other(alias, name)), (scope, alias))
        labels = [facts.label("needed_here", each.site, "reads the changed values", each.index) for each in readers]
        is_tensor = not readers and _changes_tensor(facts, place, (name, statement), (scope, alias))
        given = _given_on(scope, (name, _other(alias, name)), statement, alias) if is_tensor else None
        labels += [] if given is None else [Label("needed_here", facts.span_of(given, span.file), "gives both on")]
        if labels:
            said.add((span.file, statement.lineno))
            yield _sentence(facts, (call, statement), alias, labels)


def _changed(statement: ast.stmt) -> str | None:
    """Returns the variable that a statement changes in place: `x` of `x += 1`, `x[mask] = 0` and `x.add_(1)`."""
    if isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
        is_part = isinstance(target, ast.Subscript)
        while isinstance(target, ast.Subscript):
            target = target.value
        is_changed = is_part or isinstance(statement, ast.AugAssign)
        return target.id if isinstance(target, ast.Name) and is_changed else None
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    method = statement.value.func
    while isinstance(method, ast.Attribute) and isinstance(method.value, ast.Call):
        method = method.value.func  # the first method of a chain
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Name):
        return None
    return method.value.id if method.attr.endswith("_") and not method.attr.endswith("__") else None


def _alias(scope: _Scope, name: str, changing: ast.stmt) -> ast.Assign | None:
    """Returns the last assignment to a variable above a statement, if it only gives another variable a second name."""
    stored = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.stmt) and each.lineno < changing.lineno and not isinstance(each, ast.AugAssign)
        and name in _names_set(each)
    ]  # fmt: skip
    last = max(stored, key=lambda each: each.lineno, default=None)
    return last if isinstance(last, ast.Assign) and isinstance(last.value, ast.Name) else None


def _second_name(scope: _Scope, name: str, changing: ast.stmt) -> ast.Assign | None:
    """Returns the last assignment above a statement, in a block around it, that gives a variable a second name.

    No line between the two sets one of both variables.
    """
    found = None
    for block in _blocks_around(scope, changing):
        for each in block:
            if isinstance(each, ast.Assign) and each.lineno < changing.lineno and len(each.targets) == 1:
                is_source = isinstance(each.value, ast.Name) and each.value.id == name
                found = each if is_source and isinstance(each.targets[0], ast.Name) else found
    if found is None:
        return None
    names = name, _other(found, name)
    is_set = any(_is_set(scope, each, found.end_lineno or found.lineno, changing.lineno) for each in names)
    return None if is_set or names[0] == names[1] else found


def _blocks_around(scope: _Scope, statement: ast.stmt) -> list[list[ast.stmt]]:
    """Returns the blocks of a scope that a statement is in, from the outermost one."""
    blocks = (getattr(node, field, None) for node in ast.walk(scope) for field in ("body", "orelse", "finalbody"))
    lists = [block for block in blocks if isinstance(block, list)]
    return [block for block in lists if any(part is statement for each in block for part in ast.walk(each))]


def _given_on(
    scope: _Scope, names: tuple[str, str], changing: ast.stmt, alias: ast.Assign
) -> ast.Return | ast.Yield | None:
    """Returns the `return` or `yield` below a change that gives both variables on, if no line sets one before it.

    The change and the second name must be in blocks that the program runs together.
    """
    begin = alias.end_lineno or alias.lineno
    if isinstance(scope, ast.Module) or not any(alias in block for block in _blocks_around(scope, changing)):
        return None
    inner = [node for node in ast.walk(scope) if isinstance(node, _INNER) and node is not scope]
    hidden = {id(part) for each in inner for part in ast.walk(each)}
    for node in ast.walk(scope):
        if isinstance(node, ast.Return | ast.Yield) and id(node) not in hidden and node.lineno > changing.lineno:
            given = {each.id for each in _parts(node.value) if isinstance(each, ast.Name)}
            if given.issuperset(names) and not any(_is_set(scope, each, begin, node.lineno) for each in names):
                return node
    return None


def _changes_tensor(
    facts: TraceIndex, place: int, changed: tuple[str, ast.stmt], known: tuple[_Scope, ast.Assign]
) -> bool:
    """Returns whether a call changes the tensor that a variable has since the line that gives it a second name.

    The variable may as well be a number, of which a later sum makes a tensor, or a dict of tensors.
    """
    call, (name, statement), (scope, alias) = facts.calls[place], changed, known
    source = alias.value.id if isinstance(alias.value, ast.Name) else ""
    last = max(
        (each for each in ast.walk(scope) if isinstance(each, ast.Assign | ast.AnnAssign) and each.lineno < alias.lineno
         and source in _names_set(each)), key=lambda each: each.lineno, default=None,
    )  # fmt: skip
    if last is not None and _is_no_tensor(last.value):
        return False
    made = facts.creator(call.writes[0].tensor)
    at, span = None if made is None else facts.span(made.site), facts.span(call.site)
    if at is not None and span is not None and at.file == span.file and alias.lineno < at.line <= statement.lineno:
        return False
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if isinstance(target, ast.Subscript):
        near = facts.calls[place : place + _MAX_NEAR]
        return isinstance(target.value, ast.Name) and any(
            op_name(each) == "setitem" and (own := facts.span(each.site)) is not None and span is not None
            and own.file == span.file and statement.lineno <= own.line <= (statement.end_lineno or 0)
            for each in near
        )  # fmt: skip
    node = facts.names.syntax.node(span) if span is not None else None
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == name
    return isinstance(node, ast.AugAssign) or op_name(call).startswith("i")  # `iadd` and the like


def _is_no_tensor(value: ast.expr | None) -> bool:
    """Returns whether an expression is a number, or a collection that the program itself makes."""
    value = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(value, _NO_TENSORS) or (isinstance(value, ast.Call) and called_name(value) in _COLLECTIONS)


def _parts(value: ast.expr | None) -> list[ast.expr]:
    """Returns the items of a tuple, a list or a dict, or the arguments of a call."""
    if isinstance(value, ast.Tuple | ast.List):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.Call):
        return [*value.args, *(each.value for each in value.keywords)]
    return []


def _names_set(statement: ast.stmt) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.For | ast.AnnAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.With):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    nodes = (node for target in targets for node in ast.walk(target))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _other(alias: ast.Assign, name: str) -> str:
    """Returns the variable of `one = other` that is not a known one."""
    ids = [each.id for each in (alias.value, *alias.targets) if isinstance(each, ast.Name)]
    return next((each for each in ids if each != name), "")


def _readers(facts: TraceIndex, place: int, names: tuple[str, str], known: tuple[_Scope, ast.Assign]) -> list[Call]:
    """Returns the calls that read the changed memory by one variable and by the other, in lines below the change.

    They are in the function of the change: elsewhere the same names may be other tensors.
    """
    change, (scope, alias) = facts.calls[place], known
    storage, begin = facts.storage_of(change.writes[0].tensor, change.index), facts.span(change.site)
    named = alias.end_lineno or alias.lineno
    found: dict[str, Call] = {}
    for reader in facts.calls[place + 1 : place + 1 + _MAX_CALLS]:
        at = facts.span(reader.site)
        if at is None or begin is None or at.file != begin.file or at.line <= begin.line or takes_shape_only(reader):
            continue
        memory = [facts.storage_of(access.tensor, reader.index) for access in reader.inputs]
        if storage not in memory or scope_around(facts, at.file, at.line) is not scope:
            continue
        read = [name for name in names if _reads(facts, at, name)]
        if len(read) <= memory.count(storage):  # else it is not known which of both it is
            for name in read:
                if name not in found and not _is_set(scope, name, named, at.line):
                    found[name] = reader
    return [found[name] for name in names] if len(found) == len(names) else []


def _reads(facts: TraceIndex, span: Span, name: str) -> bool:
    """Returns whether a variable is an argument of a call or a sum, of which it takes the values."""
    node = facts.names.syntax.node(span)
    arguments: list[ast.expr] = []
    if isinstance(node, ast.Call):
        is_form = called_name(node) in _OF_FORM
        arguments = [] if is_form else [*node.args, *(keyword.value for keyword in node.keywords)]
        arguments += [node.func.value] if isinstance(node.func, ast.Attribute) else []
    elif isinstance(node, ast.BinOp):
        arguments = [node.left, node.right]
    return any(isinstance(each, ast.Name) and each.id == name for each in arguments)


def _is_set(scope: _Scope, name: str, first: int, last: int) -> bool:
    """Returns whether a line of a scope sets a variable, from one line to another one. `x += y` keeps the tensor."""
    kept = {id(node.target) for node in ast.walk(scope) if isinstance(node, ast.AugAssign)}
    stored = (node for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return any(node.id == name and first < node.lineno <= last and id(node) not in kept for node in stored)


def _sentence(
    facts: TraceIndex, change: tuple[Call, ast.stmt], alias: ast.Assign, readers: list[Label | None]
) -> StandingOut:
    call, statement = change
    span, name = facts.span(call.site), _changed(statement) or ""
    file = "" if span is None else span.file
    other = _other(alias, name)
    return stands_out(
        f"`{name}` and `{other}` are one tensor: `{facts.code_of(statement, file)}` changes both",
        facts.label("modified_here", call.site, f"changes `{other}`, too", call.index),
        Label("shared_here", facts.span_of(alias, file), "a second name, and no copy"),
        *readers,
    )
