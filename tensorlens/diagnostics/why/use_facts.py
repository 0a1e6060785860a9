"""Says who writes to a tensor's memory, who shares it, who keeps it, which losses it feeds and who optimizes it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.question.loss_paths import path_to_root
from tensorlens.analysis.question.memory_users import MemoryWrite, saved_by, sharers, writes_to
from tensorlens.diagnostics.shared.wording import as_written, named, node_text, op_text
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.records.answer import Statement
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Overwrite

LAST = 3  # writes that are listed
_NAMED, _STEPS, _PASSES = 6, 8, 8
_CAUSES = {"gradient": "its gradients", "decay": "weight decay", "write": "writes of the script"}


def write_facts(subject: Subject, everything: bool) -> tuple[list[Statement], int]:
    """Returns the writes to the memory of the tensor, all or the last ones, and how many are left out."""
    writes = writes_to(subject.facts, subject.number)
    shown = writes if everything else writes[-LAST:]
    return [_write(subject, each) for each in shown], len(writes) - len(shown)


def _write(subject: Subject, each: MemoryWrite) -> Statement:
    facts, event = subject.facts, each.event
    if isinstance(event, Overwrite):
        sites = event.sites
        lines = " or ".join(dict.fromkeys(subject.where(site) for site in sites)) or "a line that is not known"
        text = f"{lines} changed it through {op_text(event.way)}, which moves no version counter"
        return subject.say("writes", text, *sites)
    assert each.write is not None
    written = each.write.tensor
    versions = f"v{each.write.before} -> v{each.write.after}"
    if facts.tensor(written).counter != subject.tensor.counter:
        versions = "its own version stays"
    through = "" if written == subject.number else f" through {_alias(subject, written, event.index)}"
    inside = "a backward pass adds to it" if isinstance(event, Backward) else as_written(facts, event)
    return subject.say("writes", f"{inside} ({subject.where(event.site)}){through}, {versions}", event.site)


def _alias(subject: Subject, number: int, at: int) -> str:
    """Names another tensor in the memory: by a name of its own, or by what made it."""
    facts = subject.facts
    name = facts.names.script_name(number, at)
    if name is not None and name != subject.name:
        return f"`{name}`"
    made = facts.creator(number)
    return "another tensor" if made is None else f"what {subject.by(made)} made"


def sharing_facts(subject: Subject) -> Iterator[Statement]:
    """Yields the other tensors in the same memory, each with the line that made it."""
    facts = subject.facts
    found = sharers(facts, subject.number)
    for number in found[:_NAMED]:
        made = facts.creator(number)
        by = "" if made is None else f", made by {subject.by(made)}"
        names = facts.names.all_names(number) or (facts.names.display_name(number),)
        kind = " is a view of it" if facts.tensor(number).base == subject.number else ""
        if subject.tensor.base == number:
            kind = " is the tensor that it is a view of"
        text = f"{', '.join(f'`{name}`' for name in names[:3])}{kind}{by}"
        yield subject.say("memory", text, None if made is None else made.site)
    if len(found) > _NAMED:
        yield subject.say("memory", f"and {len(found) - _NAMED} more")


def holder_facts(subject: Subject) -> Iterator[Statement]:
    """Yields what refers to the tensor or its memory: names, a graph, and nodes that saved it."""
    facts, trace = subject.facts, subject.facts.trace
    bound = [binding for binding in trace.end.bindings if binding.tensor == subject.number]
    if subject.alive and bound:
        names = [b.name if b.scope == "<module>" else f"{b.name} (in {b.scope})" for b in bound]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield subject.say("holders", f"names: {', '.join(f'`{name}`' for name in names[:_NAMED])}{more}")
    yield from _graph(subject)
    seen = set[str]()
    for failure, saved in saved_by(facts, subject.number):
        call = facts.call_of_node(saved.sequence, failure.index) if saved.node else None
        where = "" if call is None else f" ({subject.where(call.site)})"
        storage = None if saved.storage is None else trace.storages[saved.storage]
        size = "" if storage is None else f" -> storage of {storage.nbytes:,} bytes"
        version = "" if saved.expected is None else f" at version {saved.expected}"
        root = named(facts, failure.inputs[0].tensor, failure.index) if failure.inputs else "a graph"
        text = f"saved for backward: {root} -> {node_text(saved.node)}{where} -> saved `{saved.slot}`{version}{size}"
        if saved.node and text not in seen:
            seen.add(text)
            yield subject.say("holders", text, None if call is None else call.site)
    for call in facts.calls:
        if call.op == "ctx.save_for_backward" and any(a.tensor == subject.number for a in call.inputs):
            if (text := f"saved for backward by {subject.by(call)}") not in seen:
                seen.add(text)
                yield subject.say("holders", text, call.site)


def _graph(subject: Subject) -> Iterator[Statement]:
    """Yields a graph that leads to a leaf: that of the root of its last pass, if the root still has that graph."""
    facts = subject.facts
    if not subject.alive or not subject.filling or subject.state is None or not subject.state.is_leaf:
        return
    backward = subject.filling[-1]
    alive = {state.tensor: state for state in facts.trace.end.states}
    for root in backward.roots:
        then, now = facts.state(root.tensor, backward.started - 1), alive.get(root.tensor)
        names = facts.names.all_names(root.tensor)
        if names and now and then and now.node is not None and (now.node, now.grad_fn) == (then.node, then.grad_fn):
            path = f"graph: `{names[0]}` -> {node_text(now.grad_fn or '')} -> ... -> `AccumulateGrad` -> it"
            yield subject.say("holders", path, backward.site)
            return


def loss_facts(subject: Subject) -> Iterator[Statement]:
    """Yields the backward passes that gave the tensor a gradient, by line, and the calls between it and a root."""
    facts = subject.facts
    own = [each for each in facts.backwards if any(root.tensor == subject.number for root in each.roots)]
    if own:
        times = "1 backward pass" if len(own) == 1 else f"{len(own)} backward passes"
        yield subject.say("losses", f"{times} of the run started from it ({subject.where(own[-1].site)})", own[-1].site)
        return
    lines: dict[int, list[Backward]] = {}
    for each in subject.filling:
        lines.setdefault(each.site, []).append(each)
    for site, passes in list(lines.items())[:_NAMED]:
        root = named(facts, passes[-1].roots[0].tensor, passes[-1].index) if passes[-1].roots else "a root"
        times = "1 pass" if len(passes) == 1 else f"{len(passes)} passes"
        yield subject.say("losses", f"{root}, {times} ({subject.where(site)})", site)
    others = [each for each in facts.backwards if not each.failed and not lines]
    tried = list({each.site: each for each in others}.values())[-_PASSES:]
    for backward in [*subject.filling[-1:], *reversed(tried)]:
        calls = path_to_root(facts, subject.number, backward)
        if calls:
            if not lines:
                root = named(facts, backward.roots[0].tensor, backward.index)
                yield subject.say("losses", f"{root} is computed from it ({subject.where(backward.site)})",
                                  backward.site)  # fmt: skip
            yield from _path(subject, calls, backward)
            return


def _path(subject: Subject, calls: list[Call], backward: Backward) -> Iterator[Statement]:
    """Yields the calls of a path, one for each line, and backward; of a long one, the first and the last."""
    steps: list[Call] = []
    for call in calls:
        if subject.facts.same_line(call.site, backward.site):
            continue
        if steps and subject.facts.same_line(steps[-1].site, call.site):
            steps[-1] = call
        else:
            steps.append(call)
    head = _STEPS // 2
    texts = [(f"{subject.where(call.site)}: {as_written(subject.facts, call)}{_function(subject, call)}", call.site)
             for call in steps]  # fmt: skip
    texts.append((f"{subject.where(backward.site)}: {as_written(subject.facts, backward)}", backward.site))
    hidden = len(texts) - _STEPS
    if hidden > 0:
        texts = [*texts[:head], (f"... {hidden + 1} more lines ...", -1), *texts[len(texts) - _STEPS + head + 1 :]]
    for text, site in texts:
        yield subject.say("path", text, site)


def _function(subject: Subject, call: Call) -> str:
    function = subject.facts.trace.sites[call.site].function
    return "" if function == "<module>" else f" in `{function}`"


def optimizer_facts(subject: Subject) -> Iterator[Statement]:
    """Yields which optimizer holds the tensor, how often it stepped, and how far the tensor moved."""
    facts, group, row = subject.facts, subject.group, subject.row
    state = subject.state
    if group is None and (state is None or not state.is_leaf or not _has_optimizers(subject)):
        return
    if group is not None:
        span = facts.span(group.site)
        made = "" if span is None else f" ({subject.where(group.site)})"
        rate = f"{group.rates[0]:g}" if group.rates[0] == group.rates[1] else "{:g} to {:g}".format(*group.rates)
        steps = "no step" if not group.steps else "1 step" if group.steps == 1 else f"{group.steps:,} steps"
        yield subject.say("optimizer", f"`{group.name}`{made}: {steps}, lr {rate}", group.site)
    elif subject.measured is None:
        yield from _unmeasured(subject)
    elif state is not None and state.requires_grad:
        yield subject.say("optimizer", "none that was made or stepped in this run")
    movement = subject.movement
    if movement is not None:
        if not movement.distance:
            yield subject.say("optimizer", "it has not moved")
            return
        share = f" ({100 * movement.distance / movement.size:.3g} % of its first size)" if movement.size else ""
        causes = [_CAUSES[cause] for cause in row.causes] if row is not None else []
        if _CAUSES["write"] not in causes and _has_other_writes(subject):
            causes.append(_CAUSES["write"])
        by = f"; what changes it: {', '.join(causes)}" if causes else ""
        yield subject.say("optimizer", f"moved {movement.distance:.3g} in L2 norm{share}{by}")


def _has_other_writes(subject: Subject) -> bool:
    """Returns whether a write past its version counter changed the tensor after its first backward pass."""
    first = subject.filling[0].index if subject.filling else -1
    for each in writes_to(subject.facts, subject.number):
        if each.index > first and (
            each.write is None or subject.facts.tensor(each.write.tensor).counter != subject.tensor.counter
        ):
            return True
    return False


def _has_optimizers(subject: Subject) -> bool:
    """Returns whether the run had an optimizer, or the tensor is meant for one."""
    groups = () if subject.measured is None else subject.measured.groups
    return bool(groups or subject.training.steps) or subject.tensor.type == "Parameter"


def _unmeasured(subject: Subject) -> Iterator[Statement]:
    """Yields the optimizers of a trace that was recorded without `--training`."""
    facts = subject.facts
    steps = [step for step in facts.trace.inspection.steps if subject.number in step.parameters]
    made = [call for call in facts.calls if call.op.startswith("optim.") and call.op.count(".") == 1]
    for call in (each for each in made if any(access.tensor == subject.number for access in each.inputs)):
        yield subject.say("optimizer", f"{subject.by(call)} holds it", call.site)
    if steps:
        times = "1 recorded step has it" if len(steps) == 1 else f"{len(steps):,} recorded steps have it"
        yield subject.say("optimizer", f"{times} ({subject.where(steps[-1].site)})", steps[-1].site)
