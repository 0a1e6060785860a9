"""Names lists whose items share their memory, which the script then overwrites: each item has the last values."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, is_inside, upwards
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.one_memory import is_one, origin
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.limits import LISTED_ITEMS
from tensorlens.records.model import Call, Span
from tensorlens.records.report import StandingOut

_MIN_ITEMS = 3
_ITEM, _KEY = re.compile(r"\[\d+\]"), re.compile(r"'[^']*'|\"[^\"]*\"")
_JOINS = frozenset({"torch.stack", "torch.cat", "torch.vstack", "torch.hstack"})
_PLAIN = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these lists by the names at the end of the run, and where the script stacks their items."""
    facts = training.facts
    seen: set[int] = set()
    skipped = training.training.leaves
    for name, numbers in _lists(facts).items():
        writes = _writes(facts, numbers, None)
        if not skipped & set(numbers) and writes and writes[-1].site not in seen:
            seen.add(writes[-1].site)
            if _is_meant(facts, name, writes):
                continue
            yield _sentence(facts, f"`{name}` holds one tensor {_times(numbers)}", numbers, writes, None)
    for call in facts.calls:
        numbers = [access.tensor for access in call.inputs]
        if call.op not in _JOINS or len(numbers) < _MIN_ITEMS or not _is_collected(facts, call):
            continue
        writes = _writes(facts, numbers, call.index)
        if not skipped & set(numbers) and writes and writes[-1].site not in seen:
            seen.add(writes[-1].site)
            text = f"{as_written(facts, call)} joins one tensor {len(numbers)} times"
            yield _sentence(facts, text, numbers, writes, call)


def _lists(facts: TraceIndex) -> dict[str, list[int]]:
    """Maps lists to the tensors that were their items at the end, or the same parts of their items."""
    lists: dict[tuple[str, str], list[int]] = defaultdict(list)
    for binding in facts.trace.end.bindings:
        item = _ITEM.search(binding.name)
        if item is not None and "." not in _KEY.sub("", binding.name[item.end() :]):
            lists[binding.name[: item.start()], binding.name[item.end() :]].append(binding.tensor)
    found: dict[str, list[int]] = {}
    for (name, _), numbers in lists.items():
        if len(numbers) >= _MIN_ITEMS and _writes(facts, numbers, None):
            found.setdefault(name, numbers)
    return found


def _is_meant(facts: TraceIndex, name: str, writes: list[Call]) -> bool:
    """Returns whether a script fills a list with one variable, as with a rate that all have, and changes that variable
    itself, and only where it does not fill the list."""
    changed = {_root(facts, call) for call in writes}
    fills = [
        each for file, tree in facts.trees() for node in ast.walk(tree) for each in _fills(facts, file, node, name)
    ]
    for file, statement, value in fills:
        around = [each for each in upwards(facts, file, statement) if isinstance(each, ast.For | ast.While)]
        whole = facts.span_of(around[-1] if around else statement, file)
        inside = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        if not changed <= inside or function_around(facts, file, statement.lineno) is not None:
            return False
        if any(is_inside(span, whole) for call in writes for span in _callers(facts, call)):
            return False
    return bool(fills)


def _root(facts: TraceIndex, call: Call) -> str:
    """Returns the variable that a line changes in place; "" for an item or an attribute."""
    node = facts.node_at(call.site)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return last_name(node.func.value) if isinstance(node.func.value, ast.Name) else ""
    return node.target.id if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else ""


def _fills(facts: TraceIndex, file: str, node: ast.AST, name: str) -> Iterator[tuple[str, ast.stmt, ast.expr]]:
    """Yields the statements that make a list with its items, or add items, and what the items are."""
    own = name.rpartition(".")[2]
    if isinstance(node, ast.Assign) and any(last_name(each) == own for each in node.targets):
        if not isinstance(node.value, ast.List) or node.value.elts:
            yield file, node, node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        if last_name(node.value.func.value) == own:
            yield file, node, node.value


def _callers(facts: TraceIndex, call: Call) -> Iterator[Span]:
    """Yields the place of a call, and those from which its functions are called."""
    site: int | None = call.site
    while site is not None and (span := facts.span(site)) is not None:
        yield span
        site = facts.trace.sites[site].caller


def _times(numbers: list[int]) -> str:
    return f"{len(numbers)} times" if len(numbers) < LISTED_ITEMS else f"at least {LISTED_ITEMS} times"


def _is_collected(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call joins the items of a list that other lines have filled."""
    node = facts.names.syntax.node(facts.trace.sites[call.site].span)
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return isinstance(first, ast.Name | ast.Attribute | ast.ListComp | ast.Call)


def _writes(facts: TraceIndex, numbers: list[int], before: int | None) -> list[Call]:
    """Returns the writes of the script to the one memory of some tensors; none unless all of them are that memory.

    There is a write for each item, so that the list was not filled with one finished value. If the items are aliases,
    only the writes after the first of them count.
    """
    first = numbers[0]
    end = before if before is not None else (facts.events[-1].index + 1 if facts.events else 0)
    source = _source(facts, first)
    if source is None or not all(_source(facts, each) == source and _is_same(facts, first, each) for each in numbers):
        return []
    made = [made for number in numbers if (made := facts.tensor(number).created_by) is not None]
    begin = min(made, default=0) if len(set(numbers)) > 1 else 0
    counters = {facts.tensor(number).counter for number in (first, source)}  # `.data` has another one
    written = sorted((each for counter in counters for each in facts.writes(counter)), key=lambda each: each[0].index)
    calls = [
        event
        for event, write in written
        if isinstance(event, Call) and not event.within and begin < event.index < end
        if is_one(facts, write.tensor, source, event.index) or write.tensor in numbers
    ]
    is_between = begin == 0 or any(call.index < max(made) for call in calls)  # else they are meant to be one memory
    return calls if len(calls) >= len(numbers) - 1 and is_between else []


def _is_same(facts: TraceIndex, one: int, other: int) -> bool:
    """Returns whether two tensors are the same elements: aliases of the whole, or of one part with a constant index."""
    if one == other:
        return True
    both = [facts.creator(one), facts.creator(other)]
    made = [each for each in both if each is not None]
    if len(made) < 2 or facts.tensor(one).shape != facts.tensor(other).shape:
        return False
    if facts.storage_of(one, made[0].index) != facts.storage_of(other, made[1].index):
        return False
    if all(each.op == "Tensor.__getitem__" for each in made):
        return made[0].site == made[1].site and _has_constant_index(facts, made[0])
    return origin(facts, one) == origin(facts, other)


def _source(facts: TraceIndex, number: int) -> int | None:
    """Returns the tensor that an item is, or the one that it is a part of."""
    made = facts.creator(number)
    if made is not None and made.op == "Tensor.__getitem__" and made.inputs:
        number = made.inputs[0].tensor
    return origin(facts, number)


def _has_constant_index(facts: TraceIndex, made: Call) -> bool:
    node = facts.names.syntax.node(facts.trace.sites[made.site].span)
    return isinstance(node, ast.Subscript) and all(isinstance(each, _PLAIN) for each in ast.walk(node.slice))


def _sentence(facts: TraceIndex, what: str, numbers: list[int], writes: list[Call], read: Call | None) -> StandingOut:
    last = max((facts.tensor(number).created_by or 0) for number in numbers)
    write = next((each for each in reversed(writes) if each.index < last), writes[-1])
    text = f"{what}: {as_written(facts, write)} changes it in place"
    used = None if read is None else facts.label("needed_here", read.site, "joined here", read.index)
    made = facts.creator(numbers[-1]) if len(set(numbers)) > 1 else None
    shared = None if made is None else facts.label("shared_here", made.site, "an item, without a copy")
    return stands_out(text, facts.label("modified_here", write.site, "changes each item"), shared, used)
