"""Answers a question about one tensor of a trace: what it is, what is in `.grad` and why, and who uses it."""

from __future__ import annotations

from dataclasses import replace

from tensorlens.analysis.question.called_tensors import CalledTensors, plain
from tensorlens.analysis.question.run_so_far import last_event_of, run_up_to, shown_line
from tensorlens.analysis.sampled_run import sampling_text
from tensorlens.analysis.story.current_names import CurrentNames
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import GRAD_SET
from tensorlens.diagnostics.why.gradient_facts import gradient_facts, gradient_state
from tensorlens.diagnostics.why.missing_reasons import missing_reasons
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.diagnostics.why.use_facts import (
    holder_facts,
    loss_facts,
    optimizer_facts,
    sharing_facts,
    write_facts,
)
from tensorlens.errors import UsageError
from tensorlens.records.answer import About, Answer, AskedTensor, ListedTensor, SourceLine, Statement
from tensorlens.records.model import Backward, Trace
from tensorlens.records.source import one_line

GRADIENT = ".grad"
_SHOWN = 60  # characters of a name in an error


def answer(trace: Trace, asked: str, at: str = "", all_writes: bool = False) -> Answer:
    """Answers what is known of the tensor that the script calls `asked`, at the end or after the last run of a line.

    Raises:
        UsageError: no tensor has this name, or nothing is recorded of this line.
    """
    facts = TraceIndex(trace)
    line, index = _line(trace, at) if at else (None, None)
    called = CalledTensors(facts, index)
    name = plain(asked)
    owner = name.removesuffix(GRADIENT) if called.tensors(name.removesuffix(GRADIENT)) else name
    numbers = called.tensors(owner)
    about: About = "tensor" if owner == name else "gradient"
    whole = Answer(asked, about, trace.script.path, trace.versions.torch, _ended(trace), line, len(numbers), None)
    past = facts if index is None else TraceIndex(run_up_to(trace, index))
    if not numbers:
        members = called.members(name)
        if not members:
            raise UsageError(_unknown(trace, asked, name, called))
        return replace(
            whole, about="members", members=tuple(_listed(Subject(past, number, each)) for each, number in members)
        )
    subject = Subject(past, numbers[-1], owner)
    names = facts.names.all_names(numbers[-1]) or (owner,)
    if index is not None:
        current = CurrentNames(trace, facts.names)
        names = tuple(each for each in dict.fromkeys((owner, *names)) if current.refers(each, numbers[-1], index))
    if subject.alive is False and owner not in names:
        names = (owner, *names)
    return _about(whole, subject, names, all_writes)


def _about(whole: Answer, subject: Subject, names: tuple[str, ...], all_writes: bool) -> Answer:
    state = gradient_state(subject)
    is_tensor = whole.about == "tensor"
    held = subject if is_tensor else _gradient_of(subject, whole.asked)
    writes, left_out = ([], 0) if held is None else write_facts(held, all_writes)
    statements = [
        *gradient_facts(subject),
        *(missing_reasons(subject) if state in ("none", "not kept") else ()),
        *(_zero_reason(subject) if state == "zero" else ()),
        *writes,
        *(sharing_facts(held) if held is not None else ()),
        *(holder_facts(held) if held is not None and is_tensor else ()),
        *loss_facts(subject),
        *optimizer_facts(subject),
        *_notes(subject),
    ]
    return replace(whole, tensor=_tensor(subject, names), statements=tuple(statements), left_out=left_out)


def _gradient_of(subject: Subject, asked: str) -> Subject | None:
    """Returns the tensor in `.grad`, if there is one and the trace has it."""
    state = subject.state
    last = subject.training.last_moment(subject.number, subject.end + 1, "fill")
    if state is None or state.grad is None or last is None or not isinstance(last.event, Backward):
        return None
    held = next((each.held for each in last.event.gradients if each.tensor == subject.number), None)
    later = subject.training.last_moment(subject.number, subject.end + 1, "touch")
    if held is None or (later is not None and later.index > last.index and getattr(later.event, "op", "") == GRAD_SET):
        return None
    return Subject(subject.facts, held, asked)


def _tensor(subject: Subject, names: tuple[str, ...]) -> AskedTensor:
    facts, tensor, state = subject.facts, subject.tensor, subject.state
    storage = facts.names.storage_of(subject.number)
    made = facts.creator(subject.number)
    statistics, movement = subject.statistics, subject.movement
    return AskedTensor(
        id=subject.number,
        names=names,
        type=tensor.type,
        shape=tensor.shape,
        dtype=tensor.dtype,
        device=tensor.device,
        leaf=None if state is None else state.is_leaf,
        requires_grad=None if state is None else state.requires_grad,
        version=None if state is None else state.version,
        grad_fn=None if state is None else state.grad_fn,
        storage=facts.names.mark(subject.number),
        nbytes=None if storage is None else facts.trace.storages[storage].nbytes,
        gradient=gradient_state(subject),
        gradient_text=None if state is None else state.grad,
        norms=() if statistics is None else statistics.norms,
        steps=None if subject.group is None else subject.group.steps,
        moved=None if movement is None else movement.distance,
        alive=subject.alive,
        made=None if made is None else subject.say("note", f"made by {subject.by(made)}", made.site),
    )


def _zero_reason(subject: Subject) -> list[Statement]:
    """Returns why zeros are not explained, if nothing explains them."""
    if subject.measured is not None or any(m.kind == "clear" for m in subject.training.moments.get(subject.number, ())):
        return []
    return [subject.say("reason", "which operation makes it zero is not recorded: `explain --training` looks for it")]


def _notes(subject: Subject) -> list[Statement]:
    trace, notes = subject.facts.trace, []
    if sampled := sampling_text(trace):
        notes.append(sampled)
    elif not is_complete(trace):
        notes.append("the run is long, and not all of its calls are kept: what is missing here may have happened")
    if subject.training.is_hidden:
        notes.append("compiled code ran: what happened inside it is not recorded")
    return [subject.say("note", text) for text in notes]


def _listed(subject: Subject) -> ListedTensor:
    """Returns the row of one tensor of a module."""
    state, group, movement = subject.state, subject.group, subject.movement
    gradient = gradient_state(subject)
    first = next(iter(missing_reasons(subject)), None) if gradient in ("none", "not kept") else None
    norms = () if subject.statistics is None else subject.statistics.norms
    moved = ""
    if movement is not None:
        share = f"{100 * movement.distance / movement.size:.3g} %" if movement.size else f"{movement.distance:.3g}"
        moved = share if movement.distance else "no"
    holds = "" if group is None else f"{group.name}, {subject.where(group.site)}"
    if group is None and subject.measured is not None and state is not None and state.requires_grad:
        holds = "none"
    return ListedTensor(
        subject.name,
        f"{subject.tensor.dtype}{list(subject.tensor.shape)}",
        None if state is None else state.requires_grad,
        gradient,
        "" if first is None else first.text,
        norms[-1] if norms else None,
        holds,
        moved,
    )


def _line(trace: Trace, at: str) -> tuple[SourceLine, int]:
    """Returns the line that `--at` names, and the last event that it caused."""
    file, _, number = at.rpartition(":")
    if not number.isdecimal() or len(number) > 9 or int(number) < 1:
        raise UsageError(f"--at takes a line, as in 12 or net.py:12, not {one_line(at, _SHOWN)!r}")
    index = last_event_of(trace, file, int(number))
    if index is None:
        raise UsageError(f"no call of line {one_line(at, _SHOWN)} is recorded: name a line that calls torch")
    event = trace.event(index)
    site = None if event is None else event.site
    shown = file or ("" if site is None else shown_line(trace, trace.sites[site].span).file)
    return SourceLine(shown, int(number)), index


def _ended(trace: Trace) -> str:
    """Says how the run ended, if that was not its normal end."""
    script = trace.script
    if script.outcome in ("ok", "recording") or (script.outcome == "exit" and script.exit_code == 0):
        return ""
    failure = None if script.failure is None else trace.failures[script.failure]
    if failure is None:
        return {"exit": f"the script ended with exit code {script.exit_code}", "error": "the script failed"}.get(
            script.outcome, f"the script was stopped ({script.outcome})"
        )
    span = None if failure.site is None else trace.sites[failure.site].span
    where = "" if span is None else f" at {shown_line(trace, span).file}:{span.line}"
    subject = "the recorded code" if script.exit_code is None else "the script"
    return f"{subject} ended with {failure.type}{where}"


def _unknown(trace: Trace, asked: str, name: str, called: CalledTensors) -> str:
    owner = name.removesuffix(GRADIENT)
    suffix = GRADIENT if owner != name else ""
    close = [f"`{each}{suffix}`" for each in called.closest(owner)]
    listed = " or ".join(filter(None, (", ".join(close[:-1]), *close[-1:])))
    hint = f"; did you mean {listed}?" if close else ""
    ended = _ended(trace)
    return f"no tensor is called `{one_line(asked, _SHOWN)}`{hint}{f' ({ended})' if ended else ''}"
