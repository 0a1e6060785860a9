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
from tensorlens.analysis.training.policies_and_values.environment_steps import names_in

_POWERS = frozenset("pow power cumprod float_power exp prod logspace reduce accumulate".split())
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_WAY = 6
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
                    if flow is None or factor is None or _is_repeated(facts, file, product, factor):
                        continue
                    if _leads(facts, flow, each, (file, reward, node)):
                        yield StepReturn(each.file, each.total, each.steps, file, node, factor)


def _may_be_of(facts: TraceIndex, file: str, node: ast.AST, each: _Sum) -> bool:
    """Returns whether a power, or a product that a loop repeats, may be one of the discount of a sum."""
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    if any(_speaks_of_discount(part) for part in parts):
        return True
    own = number_of(facts, each.file, each.power.left)
    return own is None or any(number_of(facts, file, part) == own for part in parts)


def _speaks_of_discount(node: ast.AST) -> bool:
    return any(word.startswith(("disc", "gam")) for name in names_in(node) for word in words_of(name))


def _is_power(node: ast.AST) -> bool:
    """Returns whether a node is a power, or multiplies a variable again, as `discount *= gamma` does."""
    is_operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    is_squared = is_operator and isinstance(node.right, ast.Constant)  # type: ignore[attr-defined]
    is_squared = is_squared and not _speaks_of_discount(node.left)  # type: ignore[attr-defined]
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
    """Returns the factor of a product that is the base of the powers in a sum: the same variable, or the same number by
    the name of a discount, as the weight of a bonus may be equal by chance. It must be the only one."""
    if each.power in ast.walk(product):
        return None
    base, own = each.power.left, number_of(facts, each.file, each.power.left)
    if own is not None:
        equal = [factor for factor in _factors(product) if own != 1 and number_of(facts, file, factor) == own]
        found = [factor for factor in equal if _is_variable(factor, base) or _speaks_of_discount(factor)]
        found = found if len(equal) == 1 else []
    else:
        is_near = file == each.file and _function(facts, file, base) is _function(facts, file, product)
        found = [factor for factor in _factors(product) if is_near and ast.unparse(factor) == ast.unparse(base)]
    return found[0] if len(found) == 1 else None


def _is_variable(factor: ast.expr, base: ast.expr) -> bool:
    return isinstance(factor, ast.Name | ast.Attribute) and ast.unparse(factor) == ast.unparse(base)


def _is_repeated(facts: TraceIndex, file: str, product: ast.BinOp, factor: ast.expr) -> bool:
    """Returns whether a line that makes a part of a product multiplies by the discount too."""
    own, names = number_of(facts, file, factor), names_in(product) - names_in(factor)
    for place, tree in facts.trees():
        for node in ast.walk(tree):
            made: ast.AST | None = node if isinstance(node, _Function) and node.name in names else None
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                made = node.value if names & {name for each in targets for name in names_in(each)} else None
            for part in ast.walk(made) if made is not None else ():
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and part is not product:
                    if any(_is_same(facts, place, each, (own, factor)) for each in _factors(part)):
                        return True
    return False


def _is_same(facts: TraceIndex, file: str, node: ast.expr, factor: tuple[float | None, ast.expr]) -> bool:
    is_equal = factor[0] is not None and number_of(facts, file, node) == factor[0]
    return is_equal or ast.unparse(node) == ast.unparse(factor[1]) or _speaks_of_discount(node)


def _function(facts: TraceIndex, file: str, node: ast.AST) -> _Function | None:
    above: ast.AST | None = node
    while above is not None and not isinstance(above, _Function):
        above = parent_of(facts, file, above)
    return above


def _leads(facts: TraceIndex, flow: PlainFlow, each: _Sum, target: tuple[str, ast.expr, ast.AST], way: int = 0) -> bool:
    """Returns whether the rewards of a target are the value of a sum: the line that has last set their variable, or the
    argument of a call, gets it."""
    file, reward, node = target
    while _is_plain(reward) and isinstance(reward, ast.Call) and reward.args:
        reward = reward.args[0]
    if reward is each.total:
        return True
    if not isinstance(reward, ast.Name) or way > _MAX_WAY:
        return flow.leads(facts.span_of(each.total, each.file), facts.span_of(reward, file))
    holder = _function(facts, file, node)
    values = _last_values(facts, file, (reward.id, holder), node)
    if not values and holder is not None:
        values = list(_arguments(facts, holder, reward.id))
    return any(_leads(facts, flow, each, (place, value, value), way + 1) for place, value in values)


def _last_values(
    facts: TraceIndex, file: str, variable: tuple[str, _Function | None], before: ast.AST
) -> list[tuple[str, ast.expr]]:
    """Returns the value that the last line before a node gives to a variable of its function, and adds to it there."""
    (name, holder), line = variable, getattr(before, "lineno", 0)
    found: list[tuple[int, bool, ast.expr]] = []
    for node in ast.walk(holder or facts.tree(file)):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            pairs = list(assigned_pairs(node))
        elif isinstance(node, ast.AugAssign | ast.NamedExpr):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.For):
            pairs = [(node.target, node.iter)]
        else:
            continue
        is_named = isinstance(node, ast.NamedExpr)
        for target, value in pairs:
            stored = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
            if name in stored and (node.lineno < line or (is_named and node.lineno == line)):
                if _function(facts, file, node) is holder:
                    found.append((node.lineno, isinstance(node, ast.AugAssign), value))
    last = max((at for at, is_more, _ in found if not is_more), default=0)
    return [(file, value) for at, _, value in found if at >= last]


def _arguments(facts: TraceIndex, holder: _Function, name: str) -> Iterator[tuple[str, ast.expr]]:
    """Yields what calls of a function give to a parameter."""
    names = [each.arg for each in holder.args.args if each.arg not in ("self", "cls")]
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called_name(node) == holder.name:
                given = dict(zip(names, node.args, strict=False))
                given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
                if name in given:
                    yield file, given[name]
