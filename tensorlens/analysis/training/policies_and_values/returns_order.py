"""Finds lists of returns that a loop fills from the last step on, and sums of rewards along the steps that begin with
the first one, where each step is to get the rewards after it.

The loops are read off the source, because rewards are plain numbers; the trace shows that the loss uses the list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS
from tensorlens.analysis.training.policies_and_values.advantages import is_score
from tensorlens.analysis.training.policies_and_values.environment_steps import names_in
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.records.model import Call

_TURNING = frozenset(
    "reversed reverse flip flipud fliplr rot90 insert appendleft extendleft lfilter sort sorted argsort linspace "
    "take gather index_select take_along_dim take_along_axis itemgetter".split()
)
_STEP_BACK = re.compile(r"-1, -1\)|\[::-1\]|, step=-1")
_ENTERING = OPS_ENTERING_TORCH | frozenset(("torch.stack", "torch.cat", "torch.Tensor", "torch.FloatTensor"))
_KEEPING = RESHAPING | frozenset("sub isub add iadd div truediv itruediv idiv unbind mul imul neg clamp".split())
_ORDERING = frozenset("getitem setitem gather index_select take take_along_dim index_copy scatter".split())
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_MAX_CALLS, _MAX_SCORES = 4_000, 6
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class ReturnsOrder:
    """A statement `returns.append(running)` whose list has the other order than the steps, or forward sums."""

    file: str
    loop: ast.For
    running: ast.stmt  # `running = reward + gamma * running`
    put: ast.AST  # `returns.append(running)`, or `returns[t]` that is given it
    goes_back: bool
    use: Call


def misplaced_returns(facts: TraceIndex) -> Iterator[ReturnsOrder]:
    """Yields these statements in programs that turn no order anywhere else, each loop once."""
    trees = list(facts.trees())
    loops = [
        (file, loop, found)
        for file, tree in trees
        for loop in ast.walk(tree)
        if isinstance(loop, ast.For) and (found := _sum_of(loop)) is not None
    ]
    back = [loop for _, loop, _ in loops if _goes_back(loop.iter)]
    filled = {_filled(put) for _, _, (_, put) in loops}
    if any(_turns(tree, back, filled) for _, tree in trees) or not loops:
        return
    for file, loop, (running, put) in loops:
        if loop not in back and not _is_of_returns(facts, file, loop):
            continue
        use = _use(facts, file, loop, put)
        if use is not None:
            yield ReturnsOrder(file, loop, running, put, loop in back, use)


def _sum_of(loop: ast.For) -> tuple[ast.stmt, ast.AST] | None:
    """Returns the statement that adds up along a loop, and what puts the sum into a list or array, if the loop puts
    nothing else anywhere: states that it appends as well have the order of the sums."""
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    puts = [call for call in calls if called_name(call) in ("append", "extend", "add", "push", "put", "store")]
    nodes = [node for node in ast.walk(loop) if isinstance(node, ast.Subscript | ast.Attribute)]
    stored = [node for node in nodes if isinstance(node.ctx, ast.Store)]
    sums = {name: statement for statement in loop.body if (name := _added(statement, loop)) is not None}
    if len(puts) + len(stored) != 1:
        return None
    if stored:
        holding = [each for each in loop.body if isinstance(each, ast.Assign) and each.targets[0] is stored[0]]
        is_placed = bool(holding) and isinstance(stored[0], ast.Subscript) and not _goes_back(loop.iter)
        name = _plain(holding[0].value) if is_placed else ""
        return (sums[name], stored[0]) if name in sums and stored[0].lineno >= sums[name].lineno else None
    name = _plain(puts[0].args[0]) if called_name(puts[0]) == "append" and len(puts[0].args) == 1 else ""
    return (sums[name], puts[0]) if name in sums and puts[0].lineno >= sums[name].lineno else None


def _plain(value: ast.expr) -> str:
    """Returns the variable whose value an expression has, maybe as a copy."""
    while isinstance(value, ast.Call) and called_name(value) in ("clone", "detach", "float", "item", "copy"):
        if not isinstance(value.func, ast.Attribute) and not value.args:
            break
        value = value.func.value if isinstance(value.func, ast.Attribute) else value.args[0]
    return value.id if isinstance(value, ast.Name) else ""


def _added(statement: ast.stmt, loop: ast.For) -> str | None:
    """Returns the variable of a statement `running = reward + gamma * running`, also written as two."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name, is_sum = statement.target.id, isinstance(statement.op, ast.Add)
        others = [each for each in loop.body if isinstance(each, ast.AugAssign) and each is not statement]
        scaled = [each for each in others if isinstance(each.op, ast.Mult) and last_name(each.target) == name]
        return name if is_sum and scaled and not _is_scaled(statement.value) else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name, value = statement.targets[0].id, statement.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    sides = [each for each in (value.left, value.right) if name in names_in(each)]
    is_product = len(sides) == 1 and isinstance(sides[0], ast.BinOp) and isinstance(sides[0].op, ast.Mult)
    others_side = value.right if sides and sides[0] is value.left else value.left
    return name if is_product and not _is_scaled(others_side) else None


def _is_scaled(reward: ast.expr) -> bool:
    """Returns whether a reward is multiplied by a number: the sum is a running mean, as of a baseline."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) for node in ast.walk(reward))


def _goes_back(iterated: ast.expr) -> bool:
    is_reversed = any(called_name(node) == "reversed" for node in ast.walk(iterated))
    return is_reversed or _STEP_BACK.search(ast.unparse(iterated)) is not None


def _turns(tree: ast.Module, loops: list[ast.For], filled: set[str]) -> bool:
    """Returns whether a program turns an order but for what some loops run over."""
    known = {id(node) for loop in loops for node in ast.walk(loop.iter)}
    counters = set(_counters(tree))
    for node in ast.walk(tree):
        if id(node) in known:
            continue
        if isinstance(node, ast.Slice) and node.step is not None and ast.unparse(node.step) == "-1":
            return True
        if isinstance(node, ast.Subscript) and any(map(_counts_back, ast.walk(node.slice))):
            return True
        if isinstance(node, ast.Subscript) and filled & names_in(node.value) and _is_order(node, counters):
            return True
        if _counts_back(node) and _is_by_number(node, counters):
            return True
        if _puts_first(node):
            return True
        if isinstance(node, ast.Call):
            is_range = called_name(node) in ("range", "arange") and ast.unparse(node).endswith("-1)")
            is_pop = called_name(node) == "pop" and [ast.unparse(each) for each in node.args] != ["0"]
            if is_range or is_pop or called_name(node) in _TURNING:
                return True
    return False


def _puts_first(node: ast.AST) -> bool:
    """Returns whether a node puts new items before those of a list, as `[x] + items` does, or counts down."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Sub) and isinstance(node.value, ast.Constant)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return isinstance(node.left, ast.List | ast.Tuple) and not isinstance(node.right, ast.List | ast.Tuple)
    if isinstance(node, ast.List | ast.Tuple):
        return any(isinstance(each, ast.Starred) for each in node.elts[1:])
    if not isinstance(node, ast.Assign) or called_name(node.value) not in ("cat", "concatenate", "hstack", "vstack"):
        return False
    given = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else None
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else []
    return any(last_name(node.targets[0]) in names_in(part) for part in parts[1:])


def _counts_back(node: ast.AST) -> bool:
    """Returns whether a number is lower for a higher one, as `T - 1 - t`, `-t - 1` and `~t` are."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Sub) and not isinstance(node.right, ast.Constant)
    return isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant)


def _counters(tree: ast.Module) -> Iterator[str]:
    """Yields the variables that loops count with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension) and called_name(node.iter) in ("range", "enumerate"):
            target = node.target
            counter = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            yield last_name(counter)


def _is_by_number(node: ast.AST, counters: set[str]) -> bool:
    """Returns whether a difference subtracts the number of a step, as `len(rewards) - 1 - torch.arange(n)` does."""
    right = node.right if isinstance(node, ast.BinOp) else node.operand if isinstance(node, ast.UnaryOp) else None
    ranges = () if right is None else ast.walk(right)
    return right is not None and (
        bool(counters & names_in(right)) or any(called_name(each) in ("arange", "range") for each in ranges)
    )


def _is_order(node: ast.Subscript, counters: set[str]) -> bool:
    """Returns whether an index may be an order of the items, made elsewhere."""
    index = node.slice
    is_counter = isinstance(index, ast.Name) and index.id in counters
    return isinstance(node.ctx, ast.Load) and not (isinstance(index, ast.Constant | ast.Slice) or is_counter)


def _use(facts: TraceIndex, file: str, loop: ast.For, put: ast.AST) -> Call | None:
    """Returns the call that weighs log-probabilities by the list, or compares it with what a model gives."""
    made = [call for call in facts.calls if _takes(facts, file, call, (loop, put))]
    known = {access.tensor for call in made for access in call.outputs}
    known |= {write.tensor for call in made for write in call.writes}
    known = {number for number in known if prod(facts.tensor(number).shape) > 1}
    first, looks = made[0].index if made else 0, 0
    for seen, call in enumerate(facts.calls_between(first) if known and _is_of_rewards(facts, file, loop) else ()):
        inputs = [access.tensor for access in call.inputs]
        if not known.intersection(inputs):
            continue
        if op_name(call) in _ORDERING and len(inputs) > 1:
            return None  # an index may turn the order
        others = [number for number in inputs if number not in known and facts.requires_grad(number, call.index - 1)]
        if others and (op_name(call) in ERRORS or op_name(call) in ("sub", "rsub")):
            return call if _has_policy(facts) else None
        if others and op_name(call) in _PRODUCTS and looks < _MAX_SCORES:
            looks += 1
            if is_score(facts, others[0], call.index):
                return call
        if op_name(call) in _KEEPING and not others and _keeps(call, inputs, known):
            known |= {access.tensor for access in call.outputs}
        if seen > _MAX_CALLS:
            break
    return None


def _keeps(call: Call, inputs: list[int], known: set[int]) -> bool:
    """Returns whether a result has the meaning of the list: a sum of two has not, nor a value from which the list is
    subtracted, as a baseline, or the whole sum from which the sums of the rewards before a step are."""
    name = op_name(call).removeprefix("i")
    if name in ("sub", "div", "truediv"):
        return inputs[0] in known and not known.intersection(inputs[1:])
    return name != "add" or len(inputs) == 1


def _has_policy(facts: TraceIndex) -> bool:
    return any(site.through.endswith((".log_prob", ".sample")) for site in facts.trace.sites)


def _is_of_returns(facts: TraceIndex, file: str, loop: ast.For) -> bool:
    """Returns whether the names of a loop, or of its function, speak of a return or a discount: other sums of rewards
    may be meant to run forward, as a mood does."""
    holder = _function(facts, file, loop)
    names = names_in(loop) | ({holder.name} if holder is not None else set())
    return any(word.startswith(("gam", "disc", "return", "ret")) for name in names for word in words_of(name))


def _is_of_rewards(facts: TraceIndex, file: str, loop: ast.For) -> bool:
    """Returns whether the names of a loop say that it adds up rewards: a series of data may be made in the same way."""
    return any(word.startswith("rew") for name in names_in(loop) for word in words_of(name))


def _takes(facts: TraceIndex, file: str, call: Call, filled: tuple[ast.For, ast.AST]) -> bool:
    """Returns whether a call makes a tensor of the list, in the function of the loop, or of what that returns, or
    writes to an item of it."""
    if call.op not in _ENTERING and op_name(call) != "setitem":
        return False
    node, span, (loop, put) = facts.node_at(call.site), facts.span(call.site), filled
    if node is put and op_name(call) == "setitem":
        return True
    if not isinstance(node, ast.Call) or span is None or not node.args:
        return False
    name, holder = _filled(put), _function(facts, file, loop)
    given, around = node.args[0], _function(facts, span.file, node)
    while isinstance(given, ast.Call) and called_name(given) in ("array", "asarray", "list") and given.args:
        given = given.args[0]
    if around is holder and span.file == file:
        return last_name(given) == name
    if holder is None or not any(_returns(each, name) for each in ast.walk(holder)):
        return False
    return called_name(given) == holder.name or _is_result(facts, span.file, given, around, holder.name)


def _filled(put: ast.AST) -> str:
    """Returns the name of the list or array."""
    if isinstance(put, ast.Subscript):
        return last_name(put.value)
    return last_name(put.func.value) if isinstance(put, ast.Call) and isinstance(put.func, ast.Attribute) else ""


def _function(facts: TraceIndex, file: str, node: ast.AST) -> _Function | None:
    above: ast.AST | None = node
    while above is not None and not isinstance(above, _Function):
        above = parent_of(facts, file, above)
    return above


def _returns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id == name


def _is_result(facts: TraceIndex, file: str, given: ast.expr, around: _Function | None, function: str) -> bool:
    """Returns whether a variable is what a function returns."""
    if not isinstance(given, ast.Name):
        return False
    scope = around or facts.tree(file)
    values = [
        node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == given.id for t in node.targets)
    ]
    return any(called_name(value) == function for value in values)
