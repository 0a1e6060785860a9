"""Names a `ReduceLROnPlateau` that expects a loss to rise or an accuracy to fall, and so cuts the learning rate."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around, statement_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import LearningRateSchedule
from tensorlens.records.training_values import PlateauMetric

_MIN_STEPS, _MIN_CUTS = 6, 2
_OFTEN = 0.3  # of the steps with a value that is better than all before
_FAR = 0.1  # of the first value
_LOSSES = frozenset("loss losses error err errors mse rmse mae nll ppl perplexity bce wer cer".split())
_SCORES = frozenset(
    "acc accuracy accuracies f1 auc auroc iou miou dice recall precision reward psnr ssim r2 bleu".split()
)
_TURNED = frozenset("neg negative minus negated inverse inv".split())
_Words = frozenset[str]


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these schedulers. The values show which way the metric goes, and its name which way is better."""
    facts, number = training.facts, training.measured.number
    schedules = {each.schedule: each for each in facts.trace.inspection.schedules if each.number == number}
    made = Counter(each.optimizer for each in schedules.values())
    for each in facts.trace.inspection.plateaus:
        schedule = schedules.get(each.schedule)
        if each.number != number or schedule is None or made[schedule.optimizer] > 1 or not _is_against(each):
            continue
        words = _words(facts, schedule)
        better, worse = (_LOSSES, _SCORES) if each.mode == "max" else (_SCORES, _LOSSES)
        if not words & better or words & worse:
            continue
        way, goes = ("rise", "falls") if each.mode == "max" else ("fall", "rises")
        yield stands_out(
            f'with `mode="{each.mode}"`, `{schedule.name}` waits for its metric to {way}: it {goes} from '
            f"{each.first:.3g} to {each.last:.3g} in {each.steps:,} steps, and the rate is cut {each.cuts:,} times",
            facts.label("optimizer_made_here", schedule.site, "the scheduler is made here"),
            facts.label("called_here", schedule.last, "it is given the metric here"),
        )


def _is_against(metric: PlateauMetric) -> bool:
    """Returns whether a metric went against the mode of its scheduler all along, while the rate was cut."""
    if metric.steps < _MIN_STEPS or metric.cuts < _MIN_CUTS:
        return False
    waited, other = (metric.highs, metric.lows) if metric.mode == "max" else (metric.lows, metric.highs)
    change = metric.first - metric.last if metric.mode == "max" else metric.last - metric.first
    return waited <= 1 and other >= _OFTEN * (metric.steps - 1) and change > _FAR * abs(metric.first)


def _words(facts: TraceIndex, schedule: LearningRateSchedule) -> _Words:
    """Returns the words in the names of what a scheduler is given; if they say nothing, of what this is set to."""
    span = facts.span(schedule.last)
    statement = None if span is None else statement_around(facts, span)
    if span is None or statement is None:
        return frozenset()
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    given = [arg for call in calls if _is_step(call) for arg in (*call.args, *(each.value for each in call.keywords))]
    words = _in_names(given)
    scope = scope_around(facts, span.file, span.line)
    nodes = [node for node in ast.walk(scope) if isinstance(node, ast.Assign)]
    read = {each.id for node in given for each in ast.walk(node) if isinstance(each, ast.Name)}
    values = [node.value for node in nodes if any(_sets(node, name) for name in read)]
    if words & _TURNED or any(map(_turns, [*given, *values])) or any(map(_divides, given)):
        return frozenset()
    if words & (_LOSSES | _SCORES) or len(given) != 1 or not isinstance(given[0], ast.Name):
        return words
    return frozenset() if any(map(_divides, values)) else words | _in_names(values)


def _turns(value: ast.expr) -> bool:
    """Returns whether an expression gets smaller as what it is computed from grows: `-loss`, `1 - accuracy`."""
    waiting: list[ast.AST] = [value]
    for node in waiting:
        is_less = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_metric(node.right)
        if is_less or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)):
            return True
        if isinstance(node, ast.Call) and last_name(node.func) in ("neg", "negative", "reciprocal", "exp"):
            return True
        waiting += [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    return False


def _divides(value: ast.expr) -> bool:
    """Returns whether an expression divides by a metric."""
    products = (node for node in ast.walk(value) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div))
    return any(_is_metric(node.right) for node in products)


def _is_metric(value: ast.expr) -> bool:
    return not _in_names([value]).isdisjoint(_LOSSES | _SCORES)


def _is_step(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "step"


def _sets(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _in_names(nodes: list[ast.expr]) -> _Words:
    names = [
        each.id if isinstance(each, ast.Name) else each.attr if isinstance(each, ast.Attribute) else each.value
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
    ]
    return frozenset(word for name in names for word in re.findall(r"[A-Z]?[a-z0-9]+", str(name).replace("_", " ")))
