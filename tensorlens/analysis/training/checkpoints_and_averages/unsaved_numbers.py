"""Finds flags of modules and counts of optimizers that are plain attributes, so that a loaded object begins anew.

A module saves its parameters and buffers, and an optimizer its `state` and its groups. `self.initialized = True` and
`self.t += 1` change neither.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import blocks_of, class_around, function_around, statement_around, upwards
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.module_loads import module_loads
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call, Span
from tensorlens.records.training_values import LoadedAverages

_CONSTRUCTORS = ("__init__", "__post_init__")
_OWN_STATES = frozenset("state_dict load_state_dict __getstate__ __setstate__ __dict__ vars setattr".split())
_NOT_READ = frozenset(("get", "detach", "requires_grad", "zeros_like", "ones_like", "empty_like", "rand_like"))
_TENSORS = frozenset("zeros tensor scalar_tensor".split())
_COUNTS = frozenset(("defaultdict", "Counter", "dict"))
_POWERS = frozenset(("pow", "float_power"))
_MIN_STEPS = 3


@dataclass(frozen=True, slots=True)
class UnsavedFlag:
    """A flag of a loaded module that has its first value, so that a line initializes what was loaded."""

    name: str  # "self.initialized"
    value: str  # "False"
    start: Span  # the line that gives it this value
    write: Call  # overwrites what was loaded
    load: Call


@dataclass(frozen=True, slots=True)
class UnsavedCount:
    """A count of steps of an optimizer that begins anew where the optimizer loads averages."""

    name: str  # "self.t"
    start: Span
    change: Span  # the line that counts
    change_text: str
    load: LoadedAverages


def unsaved_flags(facts: TraceIndex) -> Iterator[UnsavedFlag]:
    """Yields the flags, if the line has initialized the object that was trained and then saved or loaded from."""
    first: dict[int | None, Call] = {}  # by memory of what is loaded: the load, until something uses it
    written: dict[Span, dict[int, int]] = {}  # by line: memory that it has written, and when first
    loaded, reported = {call.index for call in module_loads(facts)}, set[tuple[str, int]]()
    for call in facts.calls if loaded and facts.backwards else ():
        if call.index in loaded:
            first[facts.storage_of(call.writes[0].tensor, call.index)] = call
            continue
        tensors = {write.tensor for write in call.writes} | ({call.inputs[0].tensor} if call.op == DATA_SET else set())
        span = facts.span(call.site)
        before = written.get(span, {}) if span is not None else {}
        for number in tensors if before else ():
            load = first.get(facts.storage_of(number, call.index - 1))
            flag = _flag_above(facts, call) if load is not None and _is_of_initialized(facts, load, before) else None
            if flag is not None and load is not None and (flag[0], flag[1].line) not in reported:
                reported.add((flag[0], flag[1].line))
                yield UnsavedFlag(*_shown(facts, flag), call, load)
        for number in tensors if span is not None and not call.within else ():
            for memory in facts.storages_of(number):
                written.setdefault(span, {}).setdefault(memory, call.index)  # type: ignore[arg-type]
        if first and (op_name(call) not in _NOT_READ or call.op == DATA_SET):
            for access in call.inputs:
                first.pop(facts.storage_of(access.tensor, call.index - 1), None)


def _is_of_initialized(facts: TraceIndex, load: Call, written: dict[int, int]) -> bool:
    """Returns whether a load takes what a line has initialized and a pass has used, also from a file."""
    passes = [backward.index for backward in facts.backwards if backward.index < load.index]

    def is_one(number: int, at: int) -> bool:
        memory = facts.storage_of(number, at)
        begun = at if memory is None else written.get(memory, at)
        return any(begun < each < at for each in passes)

    def is_copy(number: int, at: int) -> bool:
        made = facts.creator(number)
        return is_one(number, at) or (
            made is not None and made.index < at and any(is_one(each.tensor, made.index) for each in made.inputs)
        )

    source = load.inputs[-1].tensor
    made = facts.creator(source)
    span = None if made is None else facts.span(made.site)
    node = None if span is None else facts.names.syntax.node(span)
    is_read = isinstance(node, ast.Call) and last_name(node.func) == "load"
    saved = facts.trace.inspection.saved_files if is_read else ()
    files = [each for each in saved if made is not None and each.index < made.index]
    return is_copy(source, load.index) or any(is_copy(number, file.index) for file in files for number in file.tensors)


def _flag_above(facts: TraceIndex, call: Call) -> tuple[str, Span] | None:
    """Returns the attribute of `self` that decides whether a call runs, and where it gets its first value."""
    for site in facts.call_chain(call.site):
        span = facts.span(site)
        holder = None if span is None else class_around(facts, span.file, span.line)
        statement = None if span is None else statement_around(facts, span)
        if span is None or holder is None or statement is None:
            continue
        for name in _asked(facts, span, statement):
            start = start_of(holder, name)
            later = [each for each in _stores(holder, name) if each is not start]
            is_flag = isinstance(start, ast.Assign | ast.AnnAssign) and isinstance(start.value, ast.Constant)
            is_set = bool(later) and all(_is_true(each) or _counted(each) == name for each in later)
            if start is not None and is_flag and is_set and not _is_set_outside(facts, name):
                return name, facts.span_of(start, span.file)
    return None


def _is_true(statement: ast.stmt) -> bool:
    """Returns whether a statement assigns a constant that is no first value, as 0, None and False are."""
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.Constant) and bool(value.value)


def _asked(facts: TraceIndex, span: Span, statement: ast.stmt) -> Iterator[str]:
    """Yields the attributes `X` for which a statement runs in `if not self.X:`, or after `if self.X: return`."""
    around = list(upwards(facts, span.file, statement))
    tests = [each.test for each in around[1:] if isinstance(each, ast.If)]
    function = function_around(facts, span.file, span.line)
    for each in function.body if function is not None else ():
        if isinstance(each, ast.If) and each.lineno < span.line and isinstance(each.body[-1], ast.Return):
            tests.append(each.test)
    for test in tests:
        parts = [*test.values] if isinstance(test, ast.BoolOp) else [test]
        for part in parts:
            inner = part.operand if isinstance(part, ast.UnaryOp) else part
            asked = inner.left if isinstance(inner, ast.Compare) else inner
            if isinstance(asked, ast.Attribute) and last_name(asked.value) == "self":
                yield asked.attr


def _shown(facts: TraceIndex, flag: tuple[str, Span]) -> tuple[str, str, Span]:
    name, span = flag
    statement = statement_around(facts, span)
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    return f"self.{name}", "" if value is None else ast.unparse(value), span


def unsaved_counts(training: MeasuredTraining) -> Iterator[UnsavedCount]:
    """Yields the counts that are the exponent of a power, as in a correction of averages, if an optimizer of the same
    class has stepped before the load, and the loading one only after it."""
    facts = training.facts
    classes = [
        (file, each) for file, tree in facts.trees() for each in ast.walk(tree) if isinstance(each, ast.ClassDef)
    ]
    for load in facts.trace.inspection.loaded_averages:
        found = [(file, holder) for file, holder in classes if holder.name == load.name]
        if len(found) != 1 or not _goes_on(training, load) or _has_own_state(facts):
            continue
        file, holder = found[0]
        for name in dict.fromkeys(name for each in ast.walk(holder) if (name := _counted(each)) is not None):
            start = start_of(holder, name)
            changes = [each for each in _stores(holder, name) if each is not start]
            is_count = changes and all(_counted(each) == name for each in changes)
            if start is None or not is_count or not _is_constant(start, start in holder.body):
                continue
            if _is_set_outside(facts, name, reads=True):
                continue
            if any(_is_exponent(facts, method, name) for method in holder.body):
                change = facts.span_of(changes[0], file)
                text = facts.code_of(changes[0], file)
                yield UnsavedCount(f"self.{name}", facts.span_of(start, file), change, text, load)


def _goes_on(training: MeasuredTraining, load: LoadedAverages) -> bool:
    """Returns whether a new optimizer of the same class begins with loaded averages."""
    steps, new, old = training.training.steps, False, False
    for group in training.groups:
        if group.name == load.name and group.steps and group.turns[0] > 0:
            is_later = steps[group.turns[0] - 1].index > load.index
            new |= is_later and bool(set(group.parameters) & set(load.parameters))
            old |= not is_later and group.steps >= _MIN_STEPS
    return new and old


def _has_own_state(facts: TraceIndex) -> bool:
    """Returns whether the program decides itself what is saved, or sets attributes by their names."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            name = node.name if isinstance(node, ast.FunctionDef) else ""
            called = last_name(node.func) if isinstance(node, ast.Call) else ""
            if name in _OWN_STATES or called in ("vars", "setattr") or getattr(node, "attr", "") == "__dict__":
                return True
    return False


def start_of(holder: ast.ClassDef, name: str) -> ast.stmt | None:
    """Returns the statement that gives an attribute its first value: in the constructor, or in the class."""
    methods = [each for each in holder.body if isinstance(each, ast.FunctionDef) and each.name in _CONSTRUCTORS]
    inside = [each for method in methods for each in _stores(method, name)]
    own = [each for each in holder.body if isinstance(each, ast.Assign | ast.AnnAssign) and name in _class_names(each)]
    found = inside or own
    return found[0] if len(found) == 1 else None


def _class_names(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _stores(root: ast.AST, name: str) -> list[ast.stmt]:
    """Returns the statements that set or count an attribute of `self`, or an item of it."""
    found: list[ast.stmt] = []
    for block in (block for node in ast.walk(root) for block in blocks_of(node)):
        for each in block:
            targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
            if any(_own(target) == name for target in targets) or _added_in_place(each) == name:
                found.append(each)
    return found


def _own(node: ast.AST | None) -> str | None:
    """Returns `t` for `self.t` and `self.t[p]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) and last_name(node.value) == "self" else None


def _counted(node: ast.AST) -> str | None:
    """Returns the attribute that a statement counts up."""
    if isinstance(node, ast.AugAssign):
        return _own(node.target) if isinstance(node.op, ast.Add) else None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        names = [_own(target) for target in node.targets]
        before = {_own(_receiver(side)) for side in (node.value.left, node.value.right)}
        return next((name for name in names if name is not None and name in before), None)
    return _added_in_place(node)


def _receiver(node: ast.expr) -> ast.expr:
    """Returns `self.t` of `self.t.get(p, 0)`."""
    is_get = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return node.func.value if is_get else node  # type: ignore[attr-defined]


def _added_in_place(node: ast.AST) -> str | None:
    """Returns `t` for `self.t.add_(1)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    is_added = isinstance(call, ast.Call) and last_name(call.func) == "add_"
    return _own(call.func.value) if is_added and isinstance(call.func, ast.Attribute) else None  # type: ignore[union-attr]


def _is_constant(statement: ast.stmt, is_of_class: bool) -> bool:
    """Returns whether a statement assigns a number, a list or dict of numbers, or an empty one; in a class a number:
    all its objects have the one list."""
    value = getattr(statement, "value", None)
    if is_of_class:
        return isinstance(value, ast.Constant)
    if isinstance(value, ast.Call):
        names = {*_TENSORS, *_COUNTS}
        return last_name(value.func) in names and not any(isinstance(each, ast.ListComp) for each in value.args)
    if isinstance(value, ast.BinOp):
        value = value.left
    items = value.elts if isinstance(value, ast.List) else value.values if isinstance(value, ast.Dict) else [value]
    items = [value.elt] if isinstance(value, ast.ListComp) else items
    items = [value.value] if isinstance(value, ast.DictComp) else items
    return all(isinstance(each, ast.Constant) for each in items)


def _is_set_outside(facts: TraceIndex, name: str, reads: bool = False) -> bool:
    """Returns whether a line sets an attribute of an object that is not `self`; with `reads` also if one reads it."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    found = [node for node in nodes if node.attr == name and last_name(node.value) != "self"]
    return any(reads or isinstance(node.ctx, ast.Store) for node in found)


def _is_exponent(facts: TraceIndex, method: ast.AST, name: str) -> bool:
    """Returns whether a method, or a function that it gives the value to, takes a power with an attribute."""
    names = set[str]()

    def is_of(node: ast.AST) -> bool:
        inner = list(ast.walk(node))
        return any(_own(each) == name or (isinstance(each, ast.Name) and each.id in names) for each in inner)

    for each in ast.walk(method):
        if isinstance(each, ast.Assign) and is_of(each.value):
            names |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    for each in ast.walk(method):
        if any(is_of(exponent) for exponent in _exponents(each)):
            return True
        places = [place for place, value in enumerate(each.args) if is_of(value)] if isinstance(each, ast.Call) else []
        if isinstance(each, ast.Call) and places and _is_exponent_of(facts, last_name(each.func), places):
            return True
    return False


def _exponents(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return [node.right]
    return node.args[-1:] if isinstance(node, ast.Call) and last_name(node.func) in _POWERS else []


def _is_exponent_of(facts: TraceIndex, function: str, places: list[int]) -> bool:
    """Returns whether the only function of a name takes a power with an argument at one of some places."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = [node for node in nodes if node.name == function]
    if len(found) != 1:
        return False
    arguments = [each.arg for each in found[0].args.args if each.arg != "self"]
    given = {arguments[place] for place in places if place < len(arguments)}
    powers = [exponent for each in ast.walk(found[0]) for exponent in _exponents(each)]
    return any(isinstance(node, ast.Name) and node.id in given for power in powers for node in ast.walk(power))
