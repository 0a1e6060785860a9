"""Finds recurrent states that a loop carries from one episode into the next, although it knows where episodes end.

They are read off the source: the flags of an environment are plain values, which no call of torch sees.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from tensorlens.analysis.code_around import is_inside
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.policies_and_values.environment_steps import names_in

_END = re.compile(r"(.*_)?(dones?|d|ends?|ended|finished|terms?|terminals?|terminated|terminations?|over|dead)")
_TOLD = frozenset("prev previous last reward rewards rew done dones mask masks first start begin".split())
_RECURRENT = frozenset("gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell gru lstm rnn_tanh rnn_relu".split())
_LINEAR = frozenset("linear matmul mm addmm".split())
_HIDDEN = frozenset("h hx hidden hid rnn recurrent".split())
_KEEPING = frozenset("detach clone to tuple".split())
_STORING = frozenset("append add push put store extend print".split())
_ELSEWHERE = frozenset("clip_grad_norm_ clip_grad_value_ requires_grad_ detach_".split())  # no other values of a state
_SELECTING = frozenset("mul mul_ where masked_fill masked_fill_ lerp".split())
_Loop = ast.For | ast.While


@dataclass(frozen=True, slots=True)
class CarriedState:
    """A statement that gives a model its state back, the name of the state, and what begins an episode."""

    file: str
    statement: ast.Assign
    state: str
    begin: ast.AST


def carried_states(facts: TraceIndex) -> Iterator[CarriedState]:
    """Yields these statements, each state of a loop once."""
    for file, tree in facts.trees():
        reported = set[str]()
        for loop in ast.walk(tree):
            if not isinstance(loop, _Loop) or (ends := _ends(loop)) is None:
                continue
            begin = _begin(tree, loop, ends)
            for statement in ast.walk(loop) if begin is not None else ():
                state = _state(statement)
                if not isinstance(statement, ast.Assign) or state is None or state in reported or begin is None:
                    continue
                is_carried = _is_carried(tree, loop, (statement, state), ends) and not _begins_anew(tree, loop, state)
                if is_carried and _ran(facts, file, statement, state):
                    reported.add(state)
                    yield CarriedState(file, statement, state, begin)


def _ends(loop: _Loop) -> set[str] | None:
    """Returns the flags of an end that `step()` of an environment gives to a loop; None if there are none."""
    for node in ast.walk(loop):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and "step" in called_name(node.value)
        ):
            names = {last_name(each) for each in node.targets[0].elts}
            ends = {name for name in names if _END.fullmatch(name)}
            if ends and isinstance(node.value, ast.Call) and node.value.args:
                return ends | _computed_from(loop, ends)
    return None


def _computed_from(loop: _Loop, names: set[str]) -> set[str]:
    """Returns the variables of a loop that are computed from some names, as `mask = 1 - done` is."""
    found = set(names)
    for node in (each for each in ast.walk(loop) if isinstance(each, ast.Assign)):
        if found & names_in(node.value) and "step" not in called_name(node.value):
            found |= {last_name(target) for target in node.targets if isinstance(target, ast.Name)}
    return found - names


def _begin(tree: ast.Module, loop: _Loop, ends: set[str]) -> ast.AST | None:
    """Returns what begins a new episode in a loop that goes on then: a `reset()` under a condition on the end, or in
    front of an inner loop over the steps; or, in the `step()` of the program, an item that is set where one ended."""
    if isinstance(loop, ast.While) and ends & names_in(loop.test):
        return None
    for node in (each for each in ast.walk(loop) if isinstance(each, ast.If) and ends & names_in(each.test)):
        if any(isinstance(each, ast.Break | ast.Return) for each in ast.walk(node)):
            return None
        resets = [each for each in ast.walk(node) if called_name(each) == "reset"]
        if resets:
            return resets[0]
    inner = [each for each in loop.body if isinstance(each, _Loop) and _ends(each) is not None]
    resets = [each for node in loop.body if isinstance(node, ast.Assign) for each in ast.walk(node)]
    resets = [each for each in resets if called_name(each) == "reset" and isinstance(each, ast.Call) and not each.args]
    if inner and resets:
        return resets[0]
    return None if inner or not _is_masked(tree) else _own_begin(tree)


def _is_masked(tree: ast.Module) -> bool:
    """Returns whether a program leaves out the value of what follows an end, as by `1 - done`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
            if node.left.value == 1 and any(_END.fullmatch(name) for name in names_in(node.right)):
                return True
    return False


def _own_begin(tree: ast.Module) -> ast.AST | None:
    """Returns the part of a `step()` that begins episodes where others have ended: `where(done, new, state)`, or an
    assignment to the items of a state."""
    for step in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "step"):
        for node in ast.walk(step):
            if called_name(node) == "where" and isinstance(node, ast.Call) and node.args:
                if any(_END.fullmatch(name) for name in names_in(node.args[0])):
                    return node
            is_stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            if is_stored and any(_END.fullmatch(name) for name in names_in(node.slice)):  # type: ignore[attr-defined]
                return node
    return None


def _state(statement: ast.AST) -> str | None:
    """Returns the variable that a statement gives to a call and gets back from it: `out, h = net(x, h)`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    if called_name(call) in _KEEPING or "step" in called_name(call) or not call.args:
        return None
    targets = statement.targets[0].elts if isinstance(statement.targets[0], ast.Tuple) else statement.targets[:1]
    stored = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    names = {node.id for each in given for node in ast.walk(each) if isinstance(node, ast.Name)}
    return next((name for name in stored if name in names), None)


def _is_carried(tree: ast.Module, loop: _Loop, given: tuple[ast.Assign, str], ends: set[str]) -> bool:
    """Returns whether a loop sets a state only by what the model returns, and gives the model no flag of an end."""
    statement, state = given
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(state in names_in(each) for each in targets) and not _keeps(node, state):
                return False
        is_joint = isinstance(node, ast.Call | ast.BinOp | ast.If | ast.IfExp) and state in names_in(node)
        if is_joint and isinstance(node, ast.Call) and called_name(node) in _STORING:
            continue  # keeps the state with what belongs to the step
        if is_joint and isinstance(node, ast.If):
            if state in names_in(ast.Module(node.body, [])) and ends & names_in(node.test):
                return False
        elif is_joint and ends & names_in(node):
            return False
    is_changed = any(_may_change(node, state) or _passes_on(node, ends) for node in ast.walk(loop))
    if is_changed or _reads_end(tree, statement, ends) or _may_set_back(tree, statement, state):
        return False
    return not _is_told(loop, statement, state, ends)


def _begins_anew(tree: ast.Module, loop: _Loop, state: str) -> bool:
    """Returns whether a state is set for each run of a loop: in a loop around it, or in a function that a loop calls. A
    run may be one episode, or several ones that the state is to last for."""
    own = {id(node) for node in ast.walk(loop)}
    for outer in (node for node in ast.walk(tree) if isinstance(node, _Loop | ast.FunctionDef) and node is not loop):
        nodes = list(ast.walk(outer))
        if not any(node is loop for node in nodes) or (
            isinstance(outer, ast.FunctionDef) and not _is_called_again(tree, outer)
        ):
            continue
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign) and id(node) not in own:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(state in names_in(each) for each in targets) and not _keeps(node, state):
                    return True
    return False


def _is_called_again(tree: ast.Module, function: ast.FunctionDef) -> bool:
    """Returns whether a loop calls a function, or several lines do."""
    calls = [node for node in ast.walk(tree) if called_name(node) == function.name]
    loops = (node for node in ast.walk(tree) if isinstance(node, _Loop | ast.ListComp | ast.GeneratorExp))
    within = {id(each) for node in loops for each in ast.walk(node)}
    return len(calls) > 1 or any(id(each) in within for each in calls)


def _may_change(node: ast.AST, state: str) -> bool:
    """Returns whether a part of a loop may change a state in place: also a part of it, which has another name."""
    if isinstance(node, ast.For):
        return state in names_in(node.iter)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called_name(node.value) not in _STORING:
        return state in names_in(node.value)
    name = called_name(node)
    return isinstance(node, ast.Call) and name.endswith("_") and name not in _ELSEWHERE


def _passes_on(node: ast.AST, ends: set[str]) -> bool:
    """Returns whether a statement gives an end to something that may hand it to the model: a method, an attribute."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called_name(node.value) not in _STORING:
        return bool(ends & names_in(ast.Tuple([*node.value.args, *(each.value for each in node.value.keywords)])))
    if isinstance(node, ast.Assign) and any(isinstance(each, ast.Attribute) for each in node.targets):
        return bool(ends & names_in(node.value))
    return False


def _reads_end(tree: ast.Module, statement: ast.Assign, ends: set[str]) -> bool:
    """Returns whether the function that gets a state, or the `forward()` of a model, reads a flag of an end."""
    names = ("forward", called_name(statement.value))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names)
    return any(ends & names_in(function) for function in functions)


def _may_set_back(tree: ast.Module, statement: ast.Assign, state: str) -> bool:
    """Returns whether a model may set its state back: it gets more than an observation and states, or the function
    that gets a state multiplies or selects by two of its arguments."""
    call = statement.value
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return True
    states = {state} | {each.id for target in statement.targets for each in ast.walk(target) if _is_name(each)}
    more = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    if any(not isinstance(each, ast.Constant) and not names_in(each) & states for each in more):
        return True
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        given = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
        if function.name in ("forward", called_name(call)) and any(_selects(n, given) for n in ast.walk(function)):
            return True
    return False


def _selects(node: ast.AST, given: set[str]) -> bool:
    """Returns whether an operation keeps a part of one argument by another."""
    is_product = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Mult)
    is_call = isinstance(node, ast.Call) and called_name(node) in _SELECTING
    test = node.test if isinstance(node, ast.If | ast.IfExp) else None
    is_default = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot)
    is_condition = test is not None and not is_default and bool(names_in(test) & given)
    return is_condition or ((is_product or is_call) and len(names_in(node) & given) > 1)


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _keeps(node: ast.AST, state: str) -> bool:
    """Returns whether an assignment to a state only passes it on: by the model, or detached."""
    if _state(node) == state:
        return True
    if not isinstance(node, ast.Assign) or isinstance(node.targets[0], ast.Subscript):
        return False
    calls = [called_name(each) for each in ast.walk(node.value) if isinstance(each, ast.Call)]
    return state in names_in(node.value) and bool(calls) and set(calls) <= _KEEPING


def _is_told(loop: _Loop, statement: ast.Assign, state: str, ends: set[str]) -> bool:
    """Returns whether a model gets an end, a reward or an action with its input, as one does that learns to learn over
    several episodes."""
    names = names_in(statement.value) - {state}
    got = _got_from_step(loop)
    for _ in range(3):
        for node in (each for each in ast.walk(loop) if isinstance(each, ast.Assign) and each is not statement):
            if "step" not in called_name(node.value) and any(last_name(each) in names for each in node.targets):
                names |= names_in(node.value)
    if any(_counts(node, names) for node in ast.walk(loop)):
        return True  # a number of steps, or a flag, which says where an episode begins
    words = {word for name in names for word in words_of(name)}
    return bool(names & (ends | got) or words & _TOLD)


def _counts(node: ast.AST, names: set[str]) -> bool:
    """Returns whether a part of a loop counts in one of some variables, or sets it to a plain value."""
    if isinstance(node, ast.For | ast.AugAssign):
        return bool(names_in(node.target) & names)
    if not isinstance(node, ast.Assign):
        return False
    target, value = node.targets[0], node.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = [*zip(target.elts, value.elts, strict=True)]
    return any(bool(names_in(one) & names) and isinstance(other, ast.Constant | ast.Compare) for one, other in pairs)


def _got_from_step(loop: _Loop) -> set[str]:
    """Returns the variables that `step()` is given, as the action, and gives back beside the observation."""
    found = set[str]()
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and "step" in called_name(node.value):
            later = node.targets[0].elts[1:] if isinstance(node.targets[0], ast.Tuple) else []
            parts = [*node.value.args, *later]
            found |= {each.id for part in parts for each in ast.walk(part) if isinstance(each, ast.Name)}
    return found


def _ran(facts: TraceIndex, file: str, statement: ast.Assign, state: str) -> bool:
    """Returns whether a statement has run a recurrent layer more than once; or any layer, if the name of the state says
    that it is a hidden one. Other values, as running statistics, may go on through episodes."""
    around = facts.span_of(statement, file)
    own = {site.id for site in facts.trace.sites if is_inside(site.span, around)}
    calls = [call for call in facts.calls if own.intersection(facts.call_chain(call.site))]
    is_hidden = bool(_HIDDEN.intersection(words_of(state)))
    names = _RECURRENT | _LINEAR if is_hidden else _RECURRENT
    return sum(op_name(call) in names and call.nodes[1] > call.nodes[0] for call in calls) > 1
