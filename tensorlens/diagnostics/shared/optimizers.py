"""Names parameters and optimizers for the findings about them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensorlens.analysis.naming.assignments import assigned_to
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training
from tensorlens.diagnostics.shared.edits.scopes import receiver
from tensorlens.diagnostics.shared.wording import named
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Label

TITLE = 50  # characters that names may take in a title


def several(facts: TraceIndex, numbers: Sequence[int], at: int | None = None) -> str:
    """Names several tensors: "`a`", "`a` and `b`", "`a`, `b` and 6 more". Tensors with equal names count."""
    tensors = list(dict.fromkeys(numbers))
    return listed([named(facts, number, at) for number in tensors])


def titled(facts: TraceIndex, numbers: Sequence[int]) -> tuple[str, tuple[str, ...]]:
    """Names several tensors for a title, and returns the lines for `detail`.

    Long names of several tensors do not fit into a title: then it is "4 parameters", and the names go into a detail.
    """
    text, tensors = several(facts, numbers), set(numbers)
    if len(text) <= TITLE or len(tensors) == 1:
        return text, ()
    kind = "parameters" if all(facts.tensor(number).type == "Parameter" for number in tensors) else "tensors"
    return f"{len(tensors)} {kind}", (f"the {len(tensors)} {kind}: {text}",)


def listed(texts: Sequence[str]) -> str:
    """Joins the first two different texts, and counts the rest: "`a`, `b` and 6 more"."""
    shown = list(dict.fromkeys(texts))[:2]
    more = len(texts) - len(shown)
    return f"{', '.join(shown)} and {more} more" if more else " and ".join(shown)


def optimizer_name(training: Training, step: Step) -> str:
    """Returns the name that the script gave an optimizer, else its name at the step, else the name of its class."""
    made, kind = training.optimizer_call(step), step.op.removesuffix(".step")
    name = kind if made is None else made_name(training.facts, made)
    return (receiver(training.facts, step.site, "step") or name) if name == kind else name


def made_name(facts: TraceIndex, made: Call) -> str:
    """Returns the name that the script gave the object that a call made, else the name of its class."""
    site = facts.trace.sites[made.site]
    name = site.targets[0] if site.targets else assigned_to(facts.trace.sources.get(site.span.file, ""), site.span)
    return name or made.op.rpartition(".")[2]


def has_conditional_step(facts: TraceIndex, file: str, name: str) -> bool:
    """Returns whether a file calls `step()` of the optimizer of a name below a condition, as after a warm-up."""
    conditions = (node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.If))
    calls = (node for top in conditions for node in ast.walk(top) if isinstance(node, ast.Call))
    return any(plain_name(call.func) == f"{name}.step" for call in calls)


def optimizer_label(training: Training, step: Step) -> Label | None:
    """Labels the line that made the optimizer."""
    made = training.optimizer_call(step)
    if made is None:
        return None
    count = len({access.tensor for access in made.inputs})
    what = "1 parameter" if count == 1 else f"{count} parameters"
    name = made.op.rpartition(".")[2]
    return training.facts.label("optimizer_made_here", made.site, f"`{name}` is given {what}")


def born(facts: TraceIndex, number: int) -> int | None:
    """Finds the line that made a leaf, or that used it first."""
    use = facts.first_use(number)
    return None if use is None else use.site
