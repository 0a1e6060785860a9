"""Finds losses that compare two results of a network for one input, which are equal, as those of two views of a sample.

A network without random numbers returns the same for the same input. So a loss that pulls the two results of a sample
together has nothing to learn from it if the second view is the first one. With numbers of Python, or random
numbers, the two calls of the network may differ, so nothing is said where such a number may take part.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.repeated_seeds import DRAWS, RANDOM
from tensorlens.records.model import Backward, Call

_LAYERS = frozenset("linear conv1d conv2d conv3d embedding".split())
_SAME = frozenset("clone contiguous detach to float cuda cpu".split())
_WIDER = {  # types that hold all values of another one
    **dict.fromkeys(("bool", "uint8", "int8", "int16", "float16", "bfloat16"), ("float32", "float64")),
    **dict.fromkeys(("int32", "float32"), ("float64",)),
}
_COLLATING = frozenset(("stack", "cat"))
_UNKNOWN = ("dropout", "attention", "lstm", "gru", "rnn", "gumbel", "rrelu", "apply", "bernoulli")
_FUNCTIONS = ("torch", "F", "nn", "functional")
_TURNS = frozenset("t T mT transpose permute detach clone unsqueeze contiguous".split())
_SUMS = frozenset("add radd".split())
_TABLES = frozenset("matmul mm".split())
_DISTANCES = frozenset("mse_loss l1_loss smooth_l1_loss huber_loss cosine_similarity cosine_embedding_loss".split())
_LOSSES = frozenset("cross_entropy log_softmax logsumexp".split())
_INDEXED = frozenset("getitem index_select gather select randperm split chunk".split())
_OF_VALUES = DRAWS - {"randperm", "randint"}
_SETTING = frozenset("setattr __setattr__ __dict__ vars".split())
_NOT_OF_LAYERS = frozenset("grad requires_grad".split())
_WITHOUT_NUMBERS = frozenset("relu tanh sigmoid silu flatten".split())
_MOST_ABOVE, _MOST_TURNS, _MOST_CALLS, _NEAR = 400, 4, 3_000, 8


@dataclass(frozen=True, slots=True)
class EqualViews:
    """A call that compares two equal results, and the calls of the first layers, both given one input."""

    compared: Call
    first: Call
    second: Call
    view: int  # the input


@dataclass(slots=True)
class _Results:
    """The results of one pass that are known to equal an earlier one."""

    equal: dict[int, int] = field(default_factory=dict)  # tensor -> the earlier tensor
    seen: dict[tuple[object, ...], Call] = field(default_factory=dict)
    twins: list[tuple[Call, Call]] = field(default_factory=list)  # first layers that were given one input

    def of(self, number: int) -> int:
        return self.equal.get(number, number)


def equal_views(facts: TraceIndex) -> Iterator[EqualViews]:
    """Yields these calls, one for the lines of a network."""
    if _draws_in_python(facts) or _sets_attributes(facts):
        return
    reported = set[tuple[int, int]]()
    for backward in examined_passes(facts):
        calls = sorted(recorded_above(facts, backward), key=lambda call: call.index)
        if len(calls) > _MOST_CALLS:
            continue
        results = _equal_results(facts, calls)
        for call in calls if results.twins else ():
            first, second = results.twins[0]
            if (first.site, second.site) in reported or not _compares(facts, call, results, backward):
                continue
            reported.add((first.site, second.site))
            found = EqualViews(call, first, second, first.inputs[0].tensor)
            is_doubled = copied(facts, found) is not None or second_name(facts, found) is not None
            if is_doubled and not _may_differ(facts, first.index, call.index):
                yield found
            break


def _draws_in_python(facts: TraceIndex) -> bool:
    """Returns whether the program draws numbers outside of PyTorch, which no call shows."""
    calls = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Call))
    for names in (ast.unparse(node.func).split(".") for node in calls):
        is_drawn = names[0] == "random" or names[:2] in (["np", "random"], ["numpy", "random"])
        if len(names) > 1 and is_drawn and names[-1] not in ("seed", "manual_seed"):
            return True
    imported = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any(node.module in ("random", "numpy.random", "secrets") for node in imported)


def _sets_attributes(facts: TraceIndex) -> bool:
    """Returns whether the program may set a number of a layer, or give a layer the weights of another one."""
    for _, tree in facts.trees():
        nodes = list(ast.walk(tree))
        if any(isinstance(node, ast.Name | ast.Attribute) and last_name(node) in _SETTING for node in nodes):
            return True
        own = {id(each) for node in nodes if isinstance(node, ast.ClassDef) for each in _own_attributes(node)}
        stored = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
        if any(node.attr not in _NOT_OF_LAYERS and id(node) not in own for node in stored):
            return True
    return False


def _own_attributes(found: ast.ClassDef) -> Iterator[ast.Attribute]:
    """Yields the attributes that an object gives itself when it is made, or at any time if it is no layer."""
    is_plain = all(last_name(base) in ("Dataset", "object") for base in found.bases)
    for function in found.body:
        if isinstance(function, ast.FunctionDef) and (is_plain or function.name == "__init__"):
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                    yield node


def _may_differ(facts: TraceIndex, first: int, last: int) -> bool:
    """Returns whether a call between the first layer and the comparison draws numbers, or changes some in place."""
    for call in facts.calls_between(first, last):
        if op_name(call) in RANDOM or any(part in call.op for part in _UNKNOWN):
            return True
        if any(facts.tensor(write.tensor).dtype.startswith(("float", "bfloat")) for write in call.writes):
            return True
    return False


def _equal_results(facts: TraceIndex, calls: Sequence[Call]) -> _Results:
    """Follows the results of layers that are given one input twice, call by call."""
    results = _Results()
    for call in calls:
        name = op_name(call)
        written = {write.tensor for write in call.writes}
        if written & {access.tensor for access in call.outputs}:  # others may be running statistics
            results.equal |= dict.fromkeys(written, -call.index - 1)
            continue
        if name in RANDOM or any(part in call.op for part in _UNKNOWN) or len(call.outputs) != 1:
            continue
        read = [_undetached(facts, access.tensor, call.index) for access in call.inputs]
        inputs: tuple[object, ...] = tuple(results.of(number) for number in read)
        is_first = name in _LAYERS and not facts.requires_grad(call.inputs[0].tensor, call.index - 1)
        if is_first:
            inputs = (_source(facts, results.of(read[0]), call.index), *inputs[1:])
        given = _arguments(facts, call)
        if given is None:
            continue
        before = facts.call(call.index - 1)
        is_counted = before is not None and before.op == "Tensor.add_"  # a layer with statistics, in training
        key = name, given, inputs, is_counted
        earlier = results.seen.setdefault(key, call)
        is_second = earlier is not call and any(number in results.equal for number in read)
        if earlier is not call and (is_first or is_second):
            results.equal[call.outputs[0].tensor] = results.of(earlier.outputs[0].tensor)
            if is_first and _is_augmented_batch(facts, call):
                results.twins.append((earlier, call))
    return results


def _undetached(facts: TraceIndex, number: int, before: int) -> int:
    """Returns what a constant has the values of, if `detach()` made it."""
    made = None if facts.requires_grad(number, before - 1) else facts.creator(number)
    return made.inputs[0].tensor if made is not None and op_name(made) == "detach" and made.inputs else number


def _source(facts: TraceIndex, number: int, before: int) -> int | tuple[str, tuple[int, ...]]:
    """Returns what has the values of an input: it may be a copy, or put together of the same samples."""
    made = next(iter(facts.producers(number, before)), None)
    if made is not None and _is_copy(facts, made) and len(made.inputs) == 1 and not made.writes:
        return _source(facts, made.inputs[0].tensor, made.index)
    if made is not None and op_name(made) in _COLLATING and not made.writes:
        return op_name(made), tuple(access.tensor for access in made.inputs)
    return number


def _is_copy(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call keeps all values: a smaller type, or one of whole numbers, rounds them."""
    if op_name(made) not in _SAME or not made.inputs or not made.outputs:
        return False
    before, after = (facts.tensor(access.tensor).dtype for access in (made.inputs[0], made.outputs[0]))
    return before == after or after in _WIDER.get(before, ())


def _arguments(facts: TraceIndex, call: Call) -> tuple[str, ...] | None:
    """Returns the constant arguments of a call, as it is written; None if it may get a number that no line shows."""
    node, name, size = facts.node_at(call.site), op_name(call), len(call.inputs)
    if isinstance(node, ast.Call):
        given = [*node.args, *(word.value for word in node.keywords)]
        constant = [ast.unparse(each) for each in given if _is_constant(each)]
        others = len(given) - len(constant)
        is_method = isinstance(node.func, ast.Attribute) and last_name(node.func.value) not in _FUNCTIONS
        if last_name(node.func) == name:
            is_known = others + is_method <= size
        else:  # a layer, or a function by another name
            is_layer = (len(given), others) == (1, 1) and (size > 1 or _is_one_layer(facts, name))
            is_known = is_layer or (name in _DISTANCES and others == size == len(given))
        return tuple(constant) if is_known else None
    if isinstance(node, ast.Subscript):
        is_constant = not any(isinstance(each, ast.Name | ast.Attribute | ast.Call) for each in ast.walk(node.slice))
        return (ast.unparse(node.slice),) if is_constant else None
    if isinstance(node, ast.BinOp):
        sides = [ast.unparse(each) for each in (node.left, node.right) if _is_constant(each)]
        return tuple(sides) if len(sides) + size == 2 else None
    return () if isinstance(node, ast.Attribute | ast.UnaryOp) else None


def _is_one_layer(facts: TraceIndex, name: str) -> bool:
    """Returns whether all layers of a kind without parameters, as of leaky ReLUs, are made with the same numbers."""
    kind, texts, mentioned = name.replace("_", ""), list[str](), 0
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and last_name(node.func).lower() == kind:
            given = [*node.args, *(word.value for word in node.keywords)]
            texts.append(ast.unparse(node) if all(_is_constant(each) for each in given) else "")
        mentioned += isinstance(node, ast.Name | ast.Attribute) and last_name(node).lower() == kind
    return name in _WITHOUT_NUMBERS or (mentioned == len(texts) and len(set(texts)) < 2 and "" not in texts)


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _is_augmented_batch(facts: TraceIndex, call: Call) -> bool:
    """Returns whether random numbers have changed a batch, other than those that choose its rows."""
    if len(facts.tensor(call.inputs[0].tensor).shape) < 2:
        return False
    chosen = set[int]()
    for number, made in ancestry(facts, call.inputs[0].tensor, call.index, _MOST_ABOVE):
        name = op_name(made)
        if name in _INDEXED:
            chosen |= {access.tensor for access in made.inputs}
        elif number not in chosen and ("dropout" in name or name in (DRAWS if made.inputs else _OF_VALUES)):
            return True
    return False


def _compares(facts: TraceIndex, call: Call, results: _Results, backward: Backward) -> bool:
    """Returns whether a call compares two equal results: it gives their distance, the sum of two equal distances, or a
    table for a loss that takes one sample out of many."""
    name, bases = op_name(call), [_unturned(facts, access.tensor, call.index) for access in call.inputs]
    pairs = [(one, other) for one, other in combinations(bases, 2) if one != other]
    if not any(results.of(one) == results.of(other) for one, other in pairs):
        return False
    if name in _SUMS:
        is_sum = facts.tensor(call.outputs[0].tensor).shape == ()
        return is_sum and all(_is_distance(facts, access.tensor, call.index) for access in call.inputs)
    if name in _TABLES:
        is_table = len(facts.tensor(call.outputs[0].tensor).shape) == 2
        return is_table and _is_told_apart(facts, call.outputs[0].tensor, backward)
    return name in _DISTANCES


def _is_distance(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a summand is a distance of two values that both come from parameters."""
    made = [each for _, each in ancestry(facts, number, before, _NEAR) if op_name(each) in _DISTANCES][:1]
    read = [(_undetached(facts, access.tensor, each.index), each.index) for each in made for access in each.inputs]
    return len(read) == 2 and all(facts.requires_grad(tensor, at - 1) for tensor, at in read)


def _is_told_apart(facts: TraceIndex, table: int, backward: Backward) -> bool:
    """Returns whether the loss takes a sample out of those of a table, right after it is made."""
    losses = [each for each in recorded_above(facts, backward) if op_name(each) in _LOSSES and each.inputs]
    above = (ancestry(facts, each.inputs[0].tensor, each.index, _NEAR) for each in losses)
    return any(number == table for found in above for number, _ in found)


def copied(facts: TraceIndex, found: EqualViews) -> Call | None:
    """Returns the call that copies the view, if a copy is the second one."""
    made = facts.creator(found.second.inputs[0].tensor)
    return made if made is not None and _is_copy(facts, made) else None


def second_name(facts: TraceIndex, found: EqualViews) -> tuple[str, ast.AST] | None:
    """Returns the statement that gives one view two names, as `one, two = view, view`, and its file."""
    made = facts.creator(found.view)
    sites = [site for call in (made, found.second) if call is not None for site in facts.call_chain(call.site)]
    for site in dict.fromkeys(sites):
        span = facts.trace.sites[site].span
        for node in ast.walk(scope_around(facts, span.file, span.line)):
            if isinstance(node, ast.Assign | ast.Return) and node.value is not None and _names_twice(node):
                return span.file, node
    return None


def _names_twice(node: ast.Assign | ast.Return) -> bool:
    value = node.value
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        return isinstance(value, ast.Call)
    if isinstance(value, ast.Tuple | ast.List):
        names = [ast.unparse(each) for each in value.elts if isinstance(each, ast.Name | ast.Attribute)]
        return len(set(names)) < len(names)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return isinstance(value.left, ast.List | ast.Tuple) and isinstance(value.right, ast.Constant)
    return isinstance(value, ast.Name) and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)


def _unturned(facts: TraceIndex, number: int, before: int) -> int:
    for _ in range(_MOST_TURNS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _TURNS or not made.inputs:
            break
        number, before = made.inputs[0].tensor, made.index
    return number
