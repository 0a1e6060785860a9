"""Says why `.grad` is None: no leaf, cleared, no `requires_grad`, no backward pass, or a path to a loss that ends."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.question.loss_paths import path_to_root
from tensorlens.analysis.training.parameters_without_gradient import PathEnd, path_ends, unused_path_ends
from tensorlens.analysis.training.timeline import GRAD_SET
from tensorlens.diagnostics.shared.cut_facts import written
from tensorlens.diagnostics.shared.graph_cuts import cut_cause, cut_reason
from tensorlens.diagnostics.shared.wording import named
from tensorlens.diagnostics.why.gradient_facts import last_moment
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.records.answer import Statement
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.source import one_line

_MESSAGE = 80  # characters of PyTorch's message
_PASSES = 8  # that are followed back, each from a different line


def missing_reasons(subject: Subject) -> Iterator[Statement]:
    """Yields why there is no gradient, as far as the trace shows it. The first reason is the nearest one."""
    state = subject.state
    if state is None:
        return
    if not state.is_leaf and not state.retains_grad:
        yield from _no_leaf(subject)
        return
    yield from _replaced(subject)
    if subject.filling:
        yield from _cleared(subject)
        return
    if inside := _cleared_inside(subject):
        yield inside
        return
    if subject.number in subject.training.had_gradient:
        yield subject.say("reason", "an optimizer step found a gradient; what set it to None is not recorded")
        return
    yield from _failed(subject)
    yield from _returned(subject)
    required = [each for each in subject.passes if subject.facts.requires_grad(subject.number, each.started - 1)]
    if not state.requires_grad:
        yield _not_required(subject)
    if required:
        yield from _not_reached(subject, required)
    elif state.requires_grad:
        yield from _no_pass(subject)


def _no_leaf(subject: Subject) -> Iterator[Statement]:
    """Yields that a computed tensor keeps no gradient."""
    facts, state = subject.facts, subject.state
    made = facts.creator(subject.number)
    call = facts.call_of_node(None if state is None else state.node, subject.end + 1) or made
    by = f": {subject.by(call)} computed it" if call is not None else ""
    keeps = "backward keeps `.grad` only for leaves and for tensors that called `retain_grad()`"
    yield subject.say("reason", f"it is no leaf{by}; {keeps}", None if call is None else call.site)


def _replaced(subject: Subject) -> Iterator[Statement]:
    """Yields the line that put another tensor in its place in a module."""
    for each in subject.facts.trace.assignments:
        later = [other for other in subject.facts.trace.assignments if other.index > each.index]
        if subject.number not in each.old or any(subject.number in other.new for other in later):
            continue
        if subject.number not in each.new and each.index <= subject.end + 1:
            text = f"{subject.where(each.site)} put another tensor in its place, as `{each.name}`"
            yield subject.say("reason", text, each.site)


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


def _cleared_inside(subject: Subject) -> Statement | None:
    """Returns the call that set a gradient to None during the backward pass that filled it, as a hook does."""
    for call in reversed(subject.facts.calls):
        if call.op != GRAD_SET or [access.tensor for access in call.inputs] != [subject.number]:
            continue
        during = next((each for each in subject.passes if each.started <= call.index < each.index), None)
        if during is not None:
            text = f"{subject.by(call)} set it to None during the backward pass ({subject.pass_text(during)})"
            return subject.say("reason", text, call.site, during.site)
    return None


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
    never = "it has never required grad" if subject.is_whole else "it does not require grad"
    made = facts.creator(number)
    mode = "" if made is None or made.mode == "grad" else ": gradients were off when it was made"
    return subject.say("reason", f"{never}{mode}", None if made is None or not mode else made.site)


def _failed(subject: Subject) -> Iterator[Statement]:
    """Yields the last backward pass that failed, if its root was computed from the tensor."""
    for backward in (each for each in reversed(subject.facts.backwards) if each.failed):
        if not path_to_root(subject.facts, subject.number, backward):
            continue
        failures = [each for each in subject.facts.trace.failures if each.site == backward.site]
        said = f": {failures[-1].type}: {_message(failures[-1])}" if failures else ""
        where = subject.where(backward.site)
        yield subject.say("reason", f"the backward pass at {where} leads to it, and failed{said}", backward.site)
        return


def _message(failure: Failure) -> str:
    return one_line(failure.message, _MESSAGE).replace("`", "'")


def _returned(subject: Subject) -> Iterator[Statement]:
    """Yields the last `autograd.grad` whose root was computed from the tensor."""
    for backward in reversed([each for each in subject.facts.backwards if each.op == "autograd.grad"][-_PASSES:]):
        if not backward.failed and path_to_root(subject.facts, subject.number, backward):
            text = f"`torch.autograd.grad()` ({subject.where(backward.site)}) returns gradients and fills no `.grad`"
            yield subject.say("reason", text, backward.site)
            return


def _no_pass(subject: Subject) -> Iterator[Statement]:
    """Yields that no `backward()` could fill it: none ran, or all ran while it required no grad."""
    if subject.passes:
        last, made = subject.passes[-1], subject.facts.creator(subject.number)
        is_new = made is not None and made.index > last.index
        text = f"it {'was made' if is_new else 'requires grad only'} after the last backward pass"
        text = f"{text} ({subject.where(last.site)})"
        yield subject.say("reason", text, last.site)
    elif not subject.is_whole:
        yield subject.say("reason", "no `backward()` is recorded")
    elif not any(each.failed for each in subject.facts.backwards):
        yield subject.say("reason", "no `backward()` has run")


def _not_reached(subject: Subject, passes: list[Backward]) -> Iterator[Statement]:
    """Yields where the path from the tensor to a loss ends."""
    facts, number = subject.facts, subject.number
    last = list({each.site: each for each in passes}.values())[-_PASSES:]
    connected = next((each for each in reversed(last) if path_to_root(facts, number, each)), None)
    if connected is not None:
        yield _connected(subject, connected)
        return
    ends = [*path_ends(subject.training, {number})]
    ends += unused_path_ends(subject.training, {number}) if not ends and subject.is_whole else ()
    end = next((each for each in ends if each.backward in passes), None)
    if end is not None and not path_to_root(facts, number, end.backward):
        yield path_end_reason(subject, end)
        return
    used = [call for call in facts.calls if any(access.tensor == number for access in call.inputs)]
    recorded = [call for call in used if call.nodes[1] > call.nodes[0] and not call.within]
    final = passes[-1]
    if not recorded and subject.is_whole:
        text = f"autograd recorded no operation that uses it; the last pass ran at {subject.where(final.site)}"
        yield subject.say("reason", text, final.site)
    elif recorded and recorded[0].index > final.index:
        text = f"{subject.by(recorded[0])} is the first to use it, after the last backward pass"
        yield subject.say("reason", f"{text} ({subject.where(final.site)})", recorded[0].site, final.site)
    else:
        text = f"no backward pass that is recorded gave it a gradient; the last ran at {subject.where(final.site)}"
        yield subject.say("reason", text, final.site)


def _connected(subject: Subject, backward: Backward) -> Statement:
    """Says why a pass that leads to the tensor gave it no gradient."""
    where = subject.where(backward.site)
    if backward.inputs and subject.number not in backward.inputs:
        text = f"the backward pass at {where} asked only for other tensors, with `inputs=`"
        return subject.say("reason", text, backward.site)
    end = next(path_ends(subject.training, {subject.number}), None)
    if end is not None and end.kind == "swallowed" and end.backward.site == backward.site:
        return path_end_reason(subject, end)
    text = f"the backward pass at {where} leads to it, and gave it no gradient; why is not recorded"
    return subject.say("reason", text, backward.site)


def path_end_reason(subject: Subject, end: PathEnd) -> Statement:
    """Says where the path from the tensor to a loss ends."""
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
    elif end.kind == "unasked":
        text = f"{subject.where(end.backward.site)} asks for gradients of other tensors, and not for its own"
    else:
        text = f"{written(facts, call)} ({where}) is on its path to {loss}, and gives it no gradient"
    return subject.say("reason", text, call.site, end.backward.site)
