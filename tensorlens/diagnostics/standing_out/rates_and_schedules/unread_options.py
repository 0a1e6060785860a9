"""Names options of an optimizer that a script changes where no step reads them, as `defaults`, and options of a group
whose names the optimizer does not know.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import get_close_matches

from tensorlens.analysis.code_around import is_inside, statement_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.copied_groups import copied_options
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training_values import UnreadOption

_MIN_STEPS = 2
_KNOWN = frozenset(
    """
    params lr initial_lr max_lr min_lr swa_lr betas beta2_decay eps weight_decay decoupled_weight_decay momentum
    dampening nesterov alpha centered amsgrad rho d lambd t0 lr_decay initial_accumulator_value etas step_sizes
    max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn maximize foreach capturable
    differentiable fused momentum_decay ns_coefficients ns_steps adjust_lr_fn
    """.split()
)

_MEANT = frozenset(
    """
    learning_rate learningrate LR Lr rate lrate lr_rate wd decay weightdecay l2 l2_reg l2_penalty weight_decay_rate
    momentum_rate mom beta beta1 beta2 epsilon
    """.split()
)
"""Names that other libraries and papers have for options."""
_ALIKE = 0.85  # of two names: a slip of the pen


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in facts.trace.inspection.unread:
        groups = [group for group in training.groups if group.optimizer == each.optimizer]
        if each.number != training.measured.number or not groups or groups[0].steps < _MIN_STEPS:
            continue
        if each.name == "lr" and any(set(group.rates) != {each.used} for group in groups):
            continue  # some steps had another rate
        name = groups[0].name
        where = f'`defaults["{each.name}"]` of' if each.place == "defaults" else f"the attribute `{each.name}` of"
        text = f"{where} `{name}` is changed to {each.value:g}, and no step reads it: "
        text += f"each of {groups[0].steps:,} steps uses `{each.name}={each.used:g}` of its groups"
        made = facts.label("optimizer_made_here", groups[0].site, "the optimizer is made here")
        written = _written(facts, each)
        changed = None if written is None else Label("state_changed_here", written, "changed here")
        yield stands_out(text, changed, made)
    if any(group.steps for group in training.groups):
        yield from _unknown(facts)
    yield from _in_copies(training)


def _in_copies(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `group["lr"] = ...` for the groups of `optimizer.state_dict()`; a rate only where all rates stay."""
    facts, groups = training.facts, [group for group in training.groups if group.steps >= _MIN_STEPS]
    stays = all(set(group.rates) == {group.made_rate} for group in groups)
    for each in copied_options(facts):
        if not groups or each.option not in _KNOWN or (each.option == "lr" and not stays):
            continue
        text = f"`{each.code}` is set in a copy of the groups, which `{each.copy}` returns, and no step reads it"
        if each.option == "lr" and len({group.optimizer for group in groups}) == 1:
            rates = " and ".join(f"{rate:g}" for rate in sorted({group.made_rate for group in groups}))
            text += f": each of {groups[0].steps:,} steps of `{groups[0].name}` uses {rates}"
        yield stands_out(text, Label("state_changed_here", each.span, "changed here"))
        return


def _unknown(facts: TraceIndex) -> Iterator[StandingOut]:
    """Finds `{"params": ..., "learning_rate": 0.1}`, if no line of the program reads such an item."""
    nodes = [(file, node) for file, tree in facts.trees() for node in ast.walk(tree)]
    groups = [
        (file, node)
        for file, node in nodes
        if isinstance(node, ast.Dict) and "params" in map(_text, node.keys) and _is_given(facts, file, node)
    ]
    others = [node for _, node in nodes if not any(node is group for _, group in groups)]
    read = {name for node in others for name in _names(node)}
    for file, group in groups:
        for key, value in zip(group.keys, group.values, strict=True):
            name = _text(key)
            is_number = isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp) and not isinstance(_text(value), str)
            if key is not None and name and is_number and name not in _KNOWN | read and _is_like_known(name):
                yield stands_out(
                    f"`{facts.code_of(key, file)}` is no option of an optimizer of PyTorch, and no line reads it: "
                    "the group has the options that the optimizer is given",
                    Label("observed_here", facts.span_of(key, file), "nothing reads it"),
                )
                return


def _is_like_known(name: str) -> bool:
    """Returns whether a key resembles an option: another one may be a note of the program, as `"depth"`."""
    return name in _MEANT or bool(get_close_matches(name, [each for each in _KNOWN if len(each) > 2], 1, _ALIKE))


def _is_given(facts: TraceIndex, file: str, group: ast.Dict) -> bool:
    """Returns whether a call that makes an optimizer, or adds a group to one, is given a dict: in its arguments, or by
    a variable for a list with the dict."""
    span = facts.span_of(group, file)
    made = {call.site for call in facts.calls if call.op.startswith("optim.")}
    spans = [each for each in map(facts.span, made) if each is not None and each.file == file]
    statement = statement_around(facts, span)
    names = set(map(plain_name, statement.targets)) if isinstance(statement, ast.Assign) else set()
    for each in spans:
        node = facts.names.syntax.node(each)
        given = [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []
        if is_inside(span, each) or any(isinstance(arg, ast.Name) and arg.id in names for arg in given):
            return True
    calls = (node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.Call))
    adds = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "add_param_group")
    return any(argument is group for call in adds for argument in call.args)


def _names(node: ast.AST) -> Iterator[str | None]:
    """Yields the items that an expression reads or writes: `group["name"]`, `group.get("name")`, those of a dict."""
    if isinstance(node, ast.Subscript):
        yield _text(node.slice)
    elif isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        yield from map(_text, node.args[:1] if method in ("get", "pop", "setdefault") else ())
        yield from (keyword.arg for keyword in node.keywords)
    elif isinstance(node, ast.Dict):
        yield from map(_text, node.keys)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _written(facts: TraceIndex, option: UnreadOption) -> Span | None:
    """Returns the only place of the program that can write an option there; None if there are several."""
    found = [
        facts.span_of(node, file) for file, tree in facts.trees() for node in ast.walk(tree) if _writes(node, option)
    ]
    return found[0] if len(found) == 1 else None


def _writes(node: ast.AST, option: UnreadOption) -> bool:
    if option.place == "attribute":
        is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        return isinstance(node, ast.Attribute) and _is_stored(node) and node.attr == option.name and not is_own
    if not isinstance(node, ast.Subscript) or not _is_stored(node):
        return False
    held, key = node.value, node.slice
    is_name = not isinstance(key, ast.Constant) or key.value == option.name
    return isinstance(held, ast.Attribute) and held.attr == "defaults" and is_name


def _is_stored(node: ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store)
