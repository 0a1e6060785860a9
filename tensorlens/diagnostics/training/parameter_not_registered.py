"""Finds the cause of `parameter-not-registered`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.edits.registration import registered
from tensorlens.diagnostics.shared.optimizers import born, listed, optimizer_label
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.observations import Step, Unregistered
from tensorlens.records.report import Diagnostic, Fix


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    groups: dict[tuple[str, str], list[Unregistered]] = {}
    for entry in facts.trace.inspection.unregistered:
        state = facts.state(entry.tensor, entry.index)
        if state is not None and state.is_leaf and training.is_left_out(entry.tensor):
            groups.setdefault((entry.module, _attribute(entry)), []).append(entry)
    for group in groups.values():
        step = next((s for s in training.steps if s.index >= group[0].index), None)
        if step is not None:
            yield _report(training, step, group)


def _attribute(entry: Unregistered) -> str:
    """Returns the attribute that a name begins with: "hidden" of "hidden[0].weight"."""
    return entry.name.partition("[")[0]


def _report(training: Training, step: Step, group: list[Unregistered]) -> Diagnostic:
    facts, first = training.facts, group[0]
    attribute = _attribute(first)
    made = born(facts, first.tensor)
    is_own, fixes = _made_for(facts, made, first.module), list(_fixes(facts, first, len(group)))
    return finding(
        "parameter-not-registered",
        "warning" if is_own else "note",
        f"no optimizer changes {listed([f'`{entry.name}`' for entry in group])} of `{first.module}`, "
        "though backward computes gradients",
        f"`parameters()` finds an attribute that is a `Parameter` or a `Module`; `{attribute.rpartition('.')[2]}` "
        "is neither",
        [
            facts.label("leaf_made_here", made, f"{'made' if len(group) > 1 else 'it is made'} here"),
            optimizer_label(training, step),
            facts.label(
                "needed_here", step.site, "leaves them as they are" if len(group) > 1 else "leaves it as it is"
            ),
        ],
        fixes=tuple(fixes if is_own else reversed(fixes)),
        evidence={"parameters": [entry.name for entry in group]},
    )


def _made_for(facts: TraceIndex, site: int | None, module: str) -> bool:
    """Returns whether a method of the module made the tensor. A program may keep a network of its own away from
    `parameters()` on purpose: `self.teacher = [teacher]`."""
    chain = [] if site is None else facts.call_chain(site)
    return any(f"{module}." in facts.trace.sites[number].function for number in chain)


def _fixes(facts: TraceIndex, first: Unregistered, count: int) -> Iterator[Fix]:
    attribute, is_parameter = _attribute(first), facts.tensor(first.tensor).type == "Parameter"
    them = "it is" if count == 1 else "they are"
    made = registered(facts, first.module, first.name, is_parameter)
    edits = () if made is None else (made,)
    if not is_parameter:
        yield fix(f"make it a parameter: `self.{first.name} = torch.nn.Parameter(...)`", *edits)
    else:
        kind = "Parameter" if first.name.endswith("]") else "Module"  # "]": the container holds the parameter itself
        yield fix(f"put what `{attribute}` holds into a `torch.nn.{kind}List` or `{kind}Dict`", *edits)
    yield fix(f"if {them} not to be trained, freeze {'it' if count == 1 else 'them'}: `requires_grad_(False)`")
