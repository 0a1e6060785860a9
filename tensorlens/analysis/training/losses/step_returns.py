"""Finds targets of several steps that multiply the value behind these steps by the discount of a single one.

Rewards are plain numbers in most programs, so the sum and the target are read off the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.plain_flow import PlainFlow
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.losses.environment_steps import names_in

_POWERS = frozenset(("pow", "power", "cumprod", "float_power"))
_PLAIN = ast.Name | ast.Attribute | ast.Constant | ast.Subscript


@dataclass(frozen=True, slots=True)
class StepReturn:
    """A sum of the discounted rewards of some steps, and the target that adds a value behind them."""

    sum_file: str
    total: ast.expr
    steps: int
    file: str
    target: ast.AST
    discount: ast.expr


@dataclass(frozen=True, slots=True)
class _Sum:
    file: str
    power: ast.BinOp
    total: ast.expr
    steps: int


def step_returns(facts: TraceIndex) -> Iterator[StepReturn]:
    """Yields these targets in programs that have no other power of the discount, which may be that of the value."""
    powers = [(file, node) for file, tree in facts.trees() for node in ast.walk(tree) if _is_power(node)]
    sums = [found for file, node in powers if (found := _sum_of(facts, file, node)) is not None]
    known = {id(each.power) for each in sums}
    others = [(file, node) for file, node in powers if id(node) not in known]
    sums = [each for each in sums if not any(_may_be_of(facts, file, node, each) for file, node in others)]
    flow = PlainFlow(facts.trace) if sums else None
    for file, tree in facts.trees() if flow is not None else ():
        for node in ast.walk(tree):
            for reward, product in _targets(node):
                for each in sums:
                    factor = _discount(facts, file, product, each)
                    if flow is not None and factor is not None and _leads(facts, flow, each, (file, reward)):
                        yield StepReturn(each.file, each.total, each.steps, file, node, factor)


def _may_be_of(facts: TraceIndex, file: str, node: ast.AST, each: _Sum) -> bool:
    """Returns whether a power, or a product that a loop repeats, may be one of the discount of a sum."""
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    names = {name for part in parts for name in names_in(part)}
    if any(word.startswith(("disc", "gam")) for name in names for word in words_of(name)):
        return True
    own = number_of(facts, each.file, each.power.left)
    return own is None or any(number_of(facts, file, part) == own for part in parts)


def _is_power(node: ast.AST) -> bool:
    """Returns whether a node is a power, or multiplies a variable again, as `discount *= gamma` does."""
    is_operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    is_squared = is_operator and isinstance(node.right, ast.Constant)  # type: ignore[attr-defined]
    is_repeated = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult)
    return (is_operator and not is_squared) or is_repeated or called_name(node) in _POWERS


def _sum_of(facts: TraceIndex, file: str, power: ast.AST) -> _Sum | None:
    """Returns the sum over some steps whose rewards a power of a number weighs: by `sum()` of a generator, by a loop
    that adds up, or by `gamma ** torch.arange(n)`."""
    if not isinstance(power, ast.BinOp) or not isinstance(power.left, ast.Name | ast.Attribute | ast.Constant):
        return None
    above = parent_of(facts, file, power)
    over: ast.expr | None = None
    inner: ast.expr = power
    if isinstance(power.right, ast.Call) and called_name(power.right) == "arange" and power.right.args:
        over = power.right
    while above is not None and not isinstance(above, ast.stmt):
        for generator in getattr(above, "generators", ()):
            if isinstance(power.right, ast.Name) and power.right.id in names_in(generator.target):
                over = generator.iter
                inner = above if isinstance(above, ast.expr) else inner
        above = parent_of(facts, file, above)
    total = (above.value if isinstance(above, ast.Assign | ast.AugAssign | ast.Return) else None) or inner
    while over is None and above is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, ast.For) and isinstance(power.right, ast.Name):
            over = above.iter if power.right.id in names_in(above.target) else None
        above = parent_of(facts, file, above)
    steps = None if over is None else _count(facts, file, over)
    return _Sum(file, power, total, steps) if steps is not None and steps > 1 else None


def _count(facts: TraceIndex, file: str, over: ast.expr) -> int | None:
    """Returns over how many steps a loop runs: `range(n)`, a slice of n items, or a deque that holds n."""
    if not isinstance(over, ast.Call) or not over.args:
        return None
    given: ast.expr | None = over.args[-1] if called_name(over) != "enumerate" else over.args[0]
    if called_name(over) == "enumerate":
        while isinstance(given, ast.Call) and called_name(given) in ("list", "tuple", "zip") and given.args:
            given = given.args[0]
        if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice):
            upper = given.slice.upper
            given = upper.right if isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Add) else upper
        else:
            file, given = _capacity(facts, last_name(given)) or (file, None)
    elif isinstance(given, ast.Call) and called_name(given) == "len" and given.args:
        file, given = _capacity(facts, last_name(given.args[0])) or (file, None)
    number = None if given is None else number_of(facts, file, given)
    return None if number is None else int(number)


def _capacity(facts: TraceIndex, name: str) -> tuple[str, ast.expr] | None:
    """Returns the `maxlen` of the only deque that a name is given."""
    found = [
        (file, keyword.value)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target, value in assigned_pairs(node)
        if last_name(target) == name and isinstance(value, ast.Call) and called_name(value) == "deque"
        for keyword in value.keywords
        if keyword.arg == "maxlen"
    ]
    return found[0] if len(found) == 1 else None


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.BinOp]]:
    """Yields the rewards and the product that a node adds: `reward + gamma * (1 - done) * value`."""
    pairs: list[tuple[ast.expr, ast.expr]]
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
        pairs = [(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target), node.value)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = [(node.left, node.right), (node.right, node.left)]
    else:
        return
    for reward, product in pairs:
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and _is_plain(reward):
            if not (names_in(reward) & names_in(product)) or isinstance(reward, ast.Attribute | ast.Subscript):
                yield reward, product


def _is_plain(reward: ast.expr) -> bool:
    """Returns whether rewards are a variable or an item, maybe as a tensor."""
    is_made = called_name(reward) in ("tensor", "as_tensor", "stack", "from_numpy", "FloatTensor", "float")
    return isinstance(reward, _PLAIN) or is_made


def _factors(product: ast.expr) -> Iterator[ast.expr]:
    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
        yield from _factors(product.left)
        yield from _factors(product.right)
    else:
        yield product


def _discount(facts: TraceIndex, file: str, product: ast.BinOp, each: _Sum) -> ast.expr | None:
    """Returns the factor of a product that is the base of the powers in a sum."""
    if each.power in ast.walk(product):
        return None
    base, own = each.power.left, number_of(facts, each.file, each.power.left)
    for factor in _factors(product):
        is_named = last_name(factor).lower() == last_name(base).lower() != ""
        if is_named or (own is not None and own != 1 and number_of(facts, file, factor) == own):
            return factor
    return None


def _leads(facts: TraceIndex, flow: PlainFlow, each: _Sum, target: tuple[str, ast.expr]) -> bool:
    """Returns whether the value of a sum can be the rewards of a target."""
    file, reward = target
    if isinstance(reward, ast.Name) and isinstance(parent := parent_of(facts, each.file, each.total), ast.AugAssign):
        if file == each.file and last_name(parent.target) == reward.id:
            return True
    return flow.leads(facts.span_of(each.total, each.file), facts.span_of(reward, file))
