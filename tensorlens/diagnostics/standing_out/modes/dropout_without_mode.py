"""Names calls of `nn.functional.dropout()` without `training=`, which `eval()` does not reach, and attention with a
constant rate."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.modes.meant_dropout import are_samples, is_corruption
from tensorlens.analysis.written_numbers import only_value
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_DROPOUTS = frozenset(
    f"nn.functional.{name}"
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
)
_ATTENTION = "nn.functional.scaled_dot_product_attention"
_RATE_PLACE = 4  # of `dropout_p` among its arguments
_SPREADS = frozenset(("stack", "std", "var", "std_mean", "var_mean"))
_MANY = 3
_MAX_CALLS = 500  # of one run of a network
_TRAINING_PLACE = 2  # among the positional arguments


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds calls that run with gradients and, after the first of these, without, in a program that calls `eval()`.

    A program that computes a spread of results while gradients are off, as for Monte-Carlo dropout, is left alone.
    """
    facts = training.facts
    if facts.trace.inspection.switches or not _calls_eval(facts) or _asks_mode(facts):
        return
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.op in _DROPOUTS or call.op == _ATTENTION:
            sites[call.site].append(call)
        elif call.mode != "grad" and call.op.rpartition(".")[2] in _SPREADS:
            return
    for calls in sites.values():
        trained = [call for call in calls if call.mode == "grad"]
        evaluated = [call for call in calls if trained and call.mode != "grad" and call.index > trained[0].index]
        is_meant = not evaluated or _repeats(facts, evaluated) or is_corruption(facts, trained)
        reason = None if is_meant or are_samples(facts, evaluated) else _reason(facts, calls[0])
        if reason is not None:
            times = "once" if len(evaluated) == 1 else f"{len(evaluated):,} times"
            text = f"{as_written(facts, calls[0])} {reason} also where gradients "
            yield stands_out(
                f"{text}are off, {times}: `eval()` of a module does not reach it",
                facts.label("observed_here", calls[0].site, "in training mode, whatever the module's mode is"),
            )


def _calls_eval(facts: TraceIndex) -> bool:
    """Returns whether a line of the program calls a method `eval()` of something, or `train(False)`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr == "eval" or (node.func.attr == "train" and bool(node.args or node.keywords)))
        for _, tree in facts.trees()
        for node in ast.walk(tree)
    )


def _asks_mode(facts: TraceIndex) -> bool:
    """Returns whether a line reads `.training` for anything but an argument of a library's function, as `F.dropout`."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "training" and isinstance(node.ctx, ast.Load):
                above: ast.AST | None = node
                while isinstance(above, ast.Attribute | ast.IfExp | ast.BinOp | ast.keyword):
                    above = parent_of(facts, file, above)
                function = above.func if isinstance(above, ast.Call) else None
                if not isinstance(function, ast.Attribute | ast.Name):
                    return True
                if not facts.names.syntax.is_imported(function, file):
                    return True
    return False


def _repeats(facts: TraceIndex, calls: list[Call]) -> bool:
    """Returns whether a program runs one input several times between two steps, as for a mean of random results."""
    steps = [step.index for step in facts.trace.inspection.steps]
    own = {call.index for call in calls}
    times: Counter[tuple[int, int, tuple[int, ...]]] = Counter()
    for call in calls:
        place = bisect_left(steps, call.index)
        root = _root(facts, call, own, steps[place - 1] if place else -1)
        if root is not None:
            times[place, root, facts.tensor(call.inputs[0].tensor).shape] += 1
    return max(times.values(), default=0) >= _MANY


def _root(facts: TraceIndex, last: Call, own: set[int], start: int) -> int | None:
    """Returns the tensor that a call computes its result from, along first inputs; None if one of `own` is before it.

    The layers of a network that adds a result to its input, or joins both, follow one another, too.
    """
    root, waiting, seen = -1, [(last, True)], {last.index}
    for call, is_first in waiting:
        for place, access in enumerate(call.inputs):
            is_main = is_first and place == 0
            if is_main:
                root = access.tensor
            elif facts.requires_grad(access.tensor, call.index - 1) or "norm" in call.op or len(seen) > _MAX_CALLS:
                continue  # a weight, or a statistic that an earlier run left
            made = facts.producers(access.tensor, call.index)[:1]
            for each in made:
                if each.index in own:
                    return None
                if is_main or (each.index not in seen and each.index > start):
                    seen.add(each.index)
                    waiting.append((each, is_main))
    return root


def _reason(facts: TraceIndex, call: Call) -> str | None:
    """Returns why a call drops in both modes; None if its line may ask for the mode."""
    site = facts.trace.sites[call.site]
    node = facts.names.syntax.node(site.span)
    if not isinstance(node, ast.Call) or site.through or any(isinstance(each, ast.Starred) for each in node.args):
        return None
    is_direct = facts.names.syntax.is_direct(site, call.op)
    if call.op == _ATTENTION:
        given = [each.value for each in node.keywords if each.arg == "dropout_p"] + node.args[_RATE_PLACE:][:1]
        rate = number_of(facts, site.span.file, given[0]) if given and is_direct else None
        return f"has a `dropout_p` of {rate:.4g} in both modes, and drops" if rate else None
    names = _options(facts, node)
    if names is None or "training" in names or len(node.args) > _TRAINING_PLACE:
        return None
    rate_given = names.get("p", node.args[1] if len(node.args) > 1 else None)
    is_none = isinstance(rate_given, ast.Constant) and rate_given.value == 0
    is_known = is_direct or (_calls_function(facts, call.site) and _is_alias(facts, call.op))
    if is_none or not is_known:
        return None
    of = "" if is_direct else f" for `{call.op.rpartition('.')[2]}()`"
    return f"has no `training=`{of}, and runs in training mode"


def _calls_function(facts: TraceIndex, site: int) -> bool:
    """Returns whether a line calls dropout itself, and no layer that does, each time in training mode."""
    return any(each.site == site for each in facts.trace.inspection.dropped)


def _options(facts: TraceIndex, node: ast.Call) -> dict[str, ast.expr] | None:
    """Returns the arguments that a call gives by name, also those of a written dict, as `**self.options`."""
    names: dict[str, ast.expr] = {}
    for each in node.keywords:
        if each.arg is not None:
            names[each.arg] = each.value
            continue
        name = last_name(each.value)
        given = only_value(facts, name) if name else each.value
        if not isinstance(given, ast.Dict) or _is_changed(facts, name):
            return None
        for key, value in zip(given.keys, given.values, strict=True):
            if not isinstance(key, ast.Constant):
                return None
            names[str(key.value)] = value
    return names


def _is_changed(facts: TraceIndex, name: str) -> bool:
    """Returns whether a line may change a dict of this name: it does anything but give all its items to a call."""
    given, used = 0, 0
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        is_name = getattr(node, "attr", getattr(node, "id", None)) == name
        used += is_name and isinstance(getattr(node, "ctx", None), ast.Load)
        if isinstance(node, ast.keyword) and node.arg is None:
            given += getattr(node.value, "attr", getattr(node.value, "id", None)) == name
    return used != given


def _is_alias(facts: TraceIndex, op: str) -> bool:
    """Returns whether the program uses a function as a value, also in `partial()`, and never gives it a mode there."""
    found = 0
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value == "training":
                return False
            if isinstance(node, ast.Call) and _may_give_mode(facts, node, op, file):
                return False
            if isinstance(node, ast.Attribute | ast.Name) and _is_name(facts, node, op, file):
                above = parent_of(facts, file, node)
                found += not (isinstance(above, ast.Call) and above.func is node)
    return found > 0


def _is_name(facts: TraceIndex, node: ast.Attribute | ast.Name, op: str, file: str) -> bool:
    name = last_name(node)
    is_read = isinstance(node.ctx, ast.Load)
    return is_read and name == op.rpartition(".")[2] and facts.names.syntax.is_imported(node, file)


def _may_give_mode(facts: TraceIndex, node: ast.Call, op: str, file: str) -> bool:
    """Returns whether a call makes a partial function that may be of `op`, with other arguments than a rate by name."""
    if called_name(node) not in ("partial", "partialmethod"):
        return False
    given = node.args[0] if node.args else None
    if isinstance(given, ast.Attribute | ast.Name) and facts.names.syntax.is_imported(given, file):
        if last_name(given) != op.rpartition(".")[2]:
            return False
    names = {each.arg: each.value for each in node.keywords}
    rate = names.get("p")
    is_none = isinstance(rate, ast.Constant) and rate.value == 0
    return len(node.args) != 1 or bool({"training", None} & set(names)) or is_none
