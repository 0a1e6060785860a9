"""Finds the parameters of a module that a test has not trained, each with the reason that was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import measured_training
from tensorlens.diagnostics.why.gradient_facts import gradient_facts
from tensorlens.diagnostics.why.missing_reasons import missing_reasons
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.records.model import Trace
from tensorlens.records.training import ParameterStatistics

if TYPE_CHECKING:
    from tensorlens.testing.item_recording import ItemRecording


def untrained_parameters(trace: Trace, recording: ItemRecording, model: torch.nn.Module) -> list[str]:
    """Returns a text for each parameter that requires grad and was not trained."""
    facts = TraceIndex(trace)
    numbers, ids = recording.reader.tensor_numbers, recording.recorder.tensor_ids
    found = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        raw = ids.find(parameter)
        number = None if raw is None else numbers.get(raw)
        if number is None:
            found.append(f"`{name}`: no recorded call uses it")
            continue
        subject = Subject(facts, number, name)
        problems = list(_problems(subject))
        if problems:
            found.append(f"`{name}`: {'; '.join(problems)}")
    return found


def _problems(subject: Subject) -> Iterator[str]:
    statistics = subject.statistics
    if statistics is None or not statistics.filled:
        reason = next((each.text for each in missing_reasons(subject)), "")
        yield f"no gradient: {reason}" if reason else "no gradient"
    elif statistics.filled <= statistics.zero + statistics.nonfinite:
        yield _useless(subject, statistics)
    yield from _unmoved(subject)


def _useless(subject: Subject, statistics: ParameterStatistics) -> str:
    """Says that all gradients are zero, infinite or NaN, and which line makes them so, if that is known."""
    if statistics.zero == statistics.filled:
        what, sign = "each gradient is exactly zero", "passes only zeros on"
    elif statistics.nonfinite == statistics.filled:
        what, sign = "each gradient has infinities or NaN", "the derivative of"
    else:
        return "each gradient is exactly zero, or has infinities or NaN"
    cause = next((each.text for each in gradient_facts(subject) if sign in each.text), "")
    return f"{what}: {cause}" if cause else what


def _unmoved(subject: Subject) -> Iterator[str]:
    """Yields why an optimizer does not move the parameter, if any optimizer has made a step."""
    training = measured_training(subject.facts)
    if training is None or not training.measured.steps:
        return
    group, movement = subject.group, subject.movement
    if group is None:
        yield "no optimizer that this test made or stepped holds it"
    elif not group.steps:
        yield f"its optimizer `{group.name}` ({subject.where(group.site)}) has made no step"
    elif movement is not None and not movement.distance:
        yield f"`{group.name}` ({subject.where(group.site)}) has not moved it"
