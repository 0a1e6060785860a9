"""Defines `Answer`: what a trace says about one tensor that a person asks about, as sentences with their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.fields import NonNegative, Positive

Topic = Literal["gradient", "reason", "writes", "memory", "holders", "losses", "path", "optimizer", "note"]
GradientState = Literal["none", "zero", "not finite", "set", "not kept", "unknown"]
"""The `.grad` of a tensor. "set": there is one, and not all of its values are known; "not kept": it is no leaf."""


About = Literal["tensor", "gradient", "members"]
"""Whether the name is that of a tensor, of its `.grad`, or of an object that holds tensors."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the program. `file` is relative to the script's folder."""

    file: str
    line: Positive


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of an answer, with the lines that it names."""

    topic: Topic
    text: str
    lines: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedTensor:
    """A tensor as it is at the end of the run, or after a line. None: it is not known."""

    id: NonNegative
    names: tuple[str, ...]
    type: str  # "Parameter"
    shape: tuple[int, ...]
    dtype: str
    device: str
    leaf: bool | None
    requires_grad: bool | None
    version: int | None
    grad_fn: str | None
    storage: str  # its mark in reports, "#3"; "" if it has none
    nbytes: NonNegative | None  # of the storage
    gradient: GradientState
    gradient_text: str | None  # its values, or its shape and dtype
    norms: tuple[float, ...]  # L2 norms of its gradients, with `--training`
    steps: int | None  # of its optimizer, with `--training`
    moved: float | None  # the L2 norm of its movement, with `--training`
    alive: bool | None  # when the run ended
    made: Statement | None  # by which line


@dataclass(frozen=True, slots=True)
class ListedTensor:
    """One tensor of a module, in a few words."""

    name: str
    kind: str  # "float32[8, 4]"
    requires_grad: bool | None
    gradient: GradientState
    reason: str  # why there is none; "" if that is not known
    norm: float | None  # the L2 norm of its last gradient, with `--training`
    optimizer: str
    moved: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question. A module, or another object that holds tensors, has `members` and no `tensor`."""

    asked: str
    about: About
    script: str
    torch: str
    ended: str  # how the run ended, if that was not its normal end
    at: SourceLine | None  # the line that the question names
    called: NonNegative  # tensors that had this name, one after the other; the answer is about the last
    tensor: AskedTensor | None
    statements: tuple[Statement, ...] = ()
    left_out: NonNegative = 0  # writes that are not listed
    members: tuple[ListedTensor, ...] = ()
