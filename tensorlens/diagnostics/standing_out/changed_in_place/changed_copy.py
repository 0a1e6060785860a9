"""Names items of a tensor that a function takes by an index tensor, which copies them, and only changes in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_arguments import given_to
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_OF_FORM = frozenset(  # functions that take the form of an argument
    "len expand_as view_as reshape_as type_as zeros_like ones_like full_like empty_like rand_like randn_like "
    "randint_like".split()
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COPIES = frozenset("getitem index_select gather masked_select take take_along_dim".split())
_FORM = frozenset(  # attributes that have nothing of the values
    "shape size numel nelement ndim dim dtype device layout is_cuda new_zeros new_ones new_full new_empty".split()
)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, seen = training.facts, set[int]()
    for call in facts.calls:
        if op_name(call) not in _COPIES or call.site in seen or not call.inputs or not call.outputs:
            continue
        seen.add(call.site)
        base, copy = call.inputs[0].tensor, call.outputs[0].tensor
        if facts.storage_of(base, call.index) != facts.storage_of(copy, call.index):
            yield from _sentence(facts, call)


def _sentence(facts: TraceIndex, call: Call) -> Iterator[StandingOut]:
    span = facts.span(call.site)
    value = None if span is None else facts.names.syntax.node(span)
    base = _base(value, call)
    statement = None if span is None else statement_around(facts, span)
    if span is None or value is None or base is None:
        return
    if isinstance(statement, ast.Assign):
        function = function_around(facts, span.file, span.line)
        target = statement.targets[0]
        is_whole = len(statement.targets) == 1 and statement.value is value
        found = (function, target.id) if is_whole and function is not None and isinstance(target, ast.Name) else None
    else:
        found = _called(facts, call, value) if isinstance(statement, ast.Expr) else None
    changes = None if found is None else _changes(*found)
    if found is None or not changes:
        return
    code, (function, name) = facts.code_of(base, span.file), found
    why = _reason(value, call)
    where = "" if isinstance(statement, ast.Assign) else f" in `{function.name}()`"
    yield stands_out(
        f"`{facts.code_of(value, span.file)}` copies items of `{code}`{why}: what changes `{name}` in place{where} "
        f"leaves `{code}` as it is, and nothing else reads the values of `{name}`",
        Label("observed_here", facts.span_of(changes[0], span.file), "changes the copy"),
        Label("value_made_here", facts.span_of(value, span.file), "a copy"),
    )


def _reason(value: ast.AST, call: Call) -> str:
    if not isinstance(value, ast.Subscript):
        return ""
    if isinstance(value.slice, ast.List | ast.ListComp):
        return ", because the index is a list"
    return ", because the index is a tensor" if len(call.inputs) > 1 else ""


def _base(value: ast.AST | None, call: Call) -> ast.expr | None:
    """Returns the expression whose items `bank[index]`, `bank.take(i)` or `torch.take(bank, i)` copies."""
    if isinstance(value, ast.Subscript):
        return value.value if isinstance(value.ctx, ast.Load) else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or not value.args:
        return None
    if value.func.attr != op_name(call) or last_name(value.func.value) == "Tensor":
        return None  # a library's function calls it, or the method is taken from its class
    return value.func.value if call.op.startswith("Tensor.") else value.args[0]


def _called(facts: TraceIndex, copy: Call, value: ast.AST) -> tuple[_Function, str] | None:
    """Returns the function that is called with a copy by a whole statement, and the name of this argument in it.

    It is the function with the first change of the copy.
    """
    number = copy.outputs[0].tensor
    writes = (event for event, write in facts.writes(facts.tensor(number).counter) if write.tensor == number)
    change = next((event for event in writes if isinstance(event, Call) and event.index > copy.index), None)
    span = None if change is None else facts.span(change.site)
    at = None if change is None else facts.span(facts.trace.sites[change.site].caller)
    node, made = None if at is None else facts.names.syntax.node(at), facts.span(copy.site)
    if span is None or at is None or made is None or span.file != made.file or not isinstance(node, ast.Call):
        return None
    statement, function = statement_around(facts, at), function_around(facts, span.file, span.line)
    if function is None or not isinstance(statement, ast.Expr) or statement.value is not node:
        return None
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    name = next((each for each in names if given_to(function, node, each) is value), None)
    return None if name is None else (function, name)


def _changes(function: _Function, name: str) -> list[ast.stmt] | None:
    """Returns the statements that change a variable in place; None if another statement uses it."""
    outer = (node for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal))
    if any(name in node.names for node in outer):
        return None
    stored = [
        n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    found, forms = list[ast.stmt](), _forms(function)
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    for statement in statements:
        uses = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name and n not in forms]
        if not any(isinstance(n.ctx, ast.Load) for n in uses):
            if uses and isinstance(statement, ast.AugAssign):
                found.append(statement)
            continue
        if not _is_change(statement, name):
            return None
        found.append(statement)
    changing = {node for statement in found for node in ast.walk(statement)}
    elsewhere = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node not in changing)
    if any(_reads(node, name) and node not in forms for node in elsewhere):
        return None  # in the head of a block, or as the default of a function inside
    augmented = sum(isinstance(each, ast.AugAssign) for each in found)
    arguments = [each for each in ast.walk(function.args) if isinstance(each, ast.arg) and each.arg == name]
    return found if len(stored) + len(arguments) - augmented == 1 else None


def _reads(node: ast.Name, name: str) -> bool:
    """Returns whether a name is a variable that is read, or a function that reads all variables."""
    return isinstance(node.ctx, ast.Load) and node.id in (name, "locals", "vars", "eval", "exec")


def _forms(function: _Function) -> set[ast.expr]:
    """Returns the expressions of which only the shape, the dtype or the device is read: `x.shape`, `len(x)`."""
    found: set[ast.expr] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in _FORM:
            found.add(node.value)
        elif isinstance(node, ast.Call) and called_name(node) in _OF_FORM:
            found |= set(node.args[:1])
    return found


def _is_change(statement: ast.stmt, name: str) -> bool:
    """Returns whether a statement only changes `x`: `x.mul_(a).add_(b)`, `x += a`, `x[i] = a` or `init.ones_(x)`."""
    if isinstance(statement, ast.AugAssign):
        target = statement.target
        base = target.value if isinstance(target, ast.Subscript) else target
        return isinstance(base, ast.Name) and base.id == name
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) and each.value.id == name
            for each in statement.targets
        )
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
        if last_name(call.func.value) in ("init", "torch") and call.func.attr.endswith("_"):
            return isinstance(call.args[0], ast.Name) and call.args[0].id == name
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if not call.func.attr.endswith("_"):
            return False
        call = call.func.value
    return isinstance(call, ast.Name) and call.id == name
