"""Says why `.grad` is None: no leaf, cleared, no `requires_grad`, no backward pass, or where the path to a loss ends."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.parameters_without_gradient import PathEnd, path_ends, unused_path_ends
from tensorlens.analysis.training.timeline import GRAD_SET
from tensorlens.diagnostics.shared.cut_facts import written
from tensorlens.diagnostics.shared.graph_cuts import cut_cause, cut_reason
from tensorlens.diagnostics.shared.wording import named
from tensorlens.diagnostics.why.gradient_facts import last_moment
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.records.answer import Statement
from tensorlens.records.model import Backward, Call
from tensorlens.records.source import one_line

_MESSAGE = 80  # characters of PyTorch's message


def missing_reasons(subject: Subject) -> Iterator[Statement]:
    """Yields why there is no gradient, as far as the trace shows it. The first reason is the nearest one."""
    state = subject.state
    if state is None:
        return
    if not state.is_leaf and not state.retains_grad:
        yield from _no_leaf(subject)
        return
    if subject.filling:
        yield from _cleared(subject)
        return
    required = [each for each in subject.passes if subject.facts.requires_grad(subject.number, each.started - 1)]
    if not state.requires_grad:
        yield _not_required(subject)
        if not required:
            return
    yield from _no_pass(subject) if not required else _not_reached(subject, required)


def _no_leaf(subject: Subject) -> Iterator[Statement]:
    """Yields that a computed tensor keeps no gradient."""
    facts, state = subject.facts, subject.state
    made = facts.creator(subject.number)
    call = facts.call_of_node(None if state is None else state.node, subject.end + 1) or made
    by = f": {subject.by(call)} computed it" if call is not None else ""
    keeps = "backward keeps `.grad` only for leaves and for tensors that called `retain_grad()`"
    yield subject.say("reason", f"it is no leaf{by}; {keeps}", None if call is None else call.site)


def _cleared(subject: Subject) -> Iterator[Statement]:
    """Yields what set a gradient to None, and the passes since then."""
    last = last_moment(subject)
    if last is None or last.kind != "clear" or not isinstance(last.event, Call) or last.event.op != GRAD_SET:
        yield subject.say("reason", "what set it to None is not recorded")
        return
    event, filled = last.event, subject.filling[-1]
    text = f"{subject.by(event)} set it to None after the last backward pass that filled it"
    yield subject.say("reason", f"{text} ({subject.pass_text(filled)})", event.site, filled.site)
    later = [each for each in subject.passes if each.index > event.index]
    if later and subject.is_whole:
        count = "the backward pass since then gives" if len(later) == 1 else f"the {len(later)} passes since then give"
        yield subject.say("reason", f"{count} it none ({subject.where(later[-1].site)})", later[-1].site)


def _not_required(subject: Subject) -> Statement:
    """Says that a tensor does not require grad, and since when."""
    facts, number = subject.facts, subject.number
    states = [(call, state) for call in facts.calls for state in call.states if state.tensor == number]
    required = False
    since: Call | None = None
    for call, state in states:
        if required and not state.requires_grad:
            since = call
        required = state.requires_grad
    if since is not None:
        return subject.say("reason", f"it does not require grad since {subject.by(since)}", since.site)
    dtype = subject.tensor.dtype
    if dtype.startswith(("int", "uint", "bool")):
        return subject.say("reason", f"it can't require grad: its dtype is {dtype}")
    never = "it never required grad" if subject.is_whole else "it does not require grad"
    made = facts.creator(number)
    mode = "" if made is None or made.mode == "grad" else ": gradients were off when it was made"
    where = "" if made is None else f" ({subject.where(made.site)})"
    return subject.say("reason", f"{never}{mode}{where}", None if made is None else made.site)


def _no_pass(subject: Subject) -> Iterator[Statement]:
    """Yields that no backward pass could fill it: none ran, they failed, or they ran while it required no grad."""
    facts = subject.facts
    failed = [each for each in facts.trace.failures if each.op in ("Tensor.backward", "autograd.backward")]
    for failure in failed[-1:]:
        message = one_line(failure.message.strip() or failure.type, _MESSAGE).replace("`", "'")
        where = subject.where(failure.site)
        yield subject.say("reason", f"the backward pass at {where} failed: {failure.type}: {message}", failure.site)
    if subject.passes:
        text = "it requires grad only since the last backward pass"
        yield subject.say("reason", f"{text} ({subject.where(subject.passes[-1].site)})", subject.passes[-1].site)
        return
    grads = [each for each in facts.backwards if each.op == "autograd.grad" and not each.failed]
    if grads:
        text = f"`torch.autograd.grad()` ({subject.where(grads[-1].site)}) returns gradients and fills no `.grad`"
        yield subject.say("reason", text, grads[-1].site)
    if subject.is_whole and not failed:
        yield subject.say("reason", "no `backward()` ran" + ("" if not grads else " beside it"))
    elif not failed:
        yield subject.say("reason", "no `backward()` is recorded")


def _not_reached(subject: Subject, passes: list[Backward]) -> Iterator[Statement]:
    """Yields where the path from the tensor to a loss ends."""
    facts, number = subject.facts, subject.number
    asked = [each for each in passes if each.inputs and number not in each.inputs]
    if len(asked) == len(passes):
        text = f"each `backward()` asked only for other tensors, with `inputs=` ({subject.where(asked[-1].site)})"
        yield subject.say("reason", text, asked[-1].site)
        return
    end = next(iter(path_ends(subject.training, {number})), None)
    end = end or next(unused_path_ends(subject.training, {number}), None)
    if end is not None:
        yield _path_end(subject, end)
        return
    used = [call for call in facts.calls if any(access.tensor == number for access in call.inputs)]
    recorded = [call for call in used if call.nodes[1] > call.nodes[0] and not call.within]
    last = passes[-1]
    if not recorded and subject.is_whole:
        yield subject.say("reason", f"no recorded operation uses it; the last pass ran at {subject.where(last.site)}",
                          last.site)  # fmt: skip
    elif recorded and recorded[-1].index > last.index:
        text = f"it was used last by {subject.by(recorded[-1])}, after the last backward pass"
        yield subject.say("reason", f"{text} ({subject.where(last.site)})", recorded[-1].site, last.site)
    else:
        count = "the backward pass" if len(passes) == 1 else f"each of {len(passes)} backward passes"
        whole = "" if subject.is_whole else " that is recorded"
        yield subject.say("reason", f"{count}{whole} gave it no gradient; why is not recorded", last.site)


def _path_end(subject: Subject, end: PathEnd) -> Statement:
    facts, call = subject.facts, end.cut.call
    root = named(facts, end.backward.roots[0].tensor, end.backward.index) if end.backward.roots else "the root"
    loss = f"{root} ({subject.where(end.backward.site)})"
    where = subject.where(call.site)
    if end.kind == "cut":
        text = f"its path to {loss} ends at {where}: {cut_cause(facts, end.cut)}; {cut_reason(facts, end.cut)}"
    elif end.kind == "late":
        text = f"{written(facts, call)} ({where}) used it before it required grad, on its path to {loss}"
    elif end.kind == "unused":
        text = f"{loss} does not use what {written(facts, call)} ({where}) computed from it"
    else:
        text = f"{written(facts, call)} ({where}) is on its path to {loss}, and gives it no gradient"
    return subject.say("reason", text, call.site, end.backward.site)
