"""The frozen records of what stood round a refusal: plain values, arguments, nodes of a failed graph, and what modules
were given before.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import SiteId, TensorId


@dataclass(frozen=True, slots=True)
class Value:
    """A value that the failing expression names, by the bytecode of its function: plain Python, NumPy, a tensor."""

    name: str  # "values"; "" where the value has no name there
    type: str  # "list", "ndarray", "generator", "exhausted generator"
    site: SiteId | None  # where the name was bound to it
    used: SiteId | None  # where the name was read last before that


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor that a Python function of torch was given, by the name of its parameter."""

    name: str  # "weight"
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a failed graph at which backward ended, or through which it has no way."""

    name: str  # "CdistBackwardBackward0"
    sequence: int | None  # of the forward node whose derivative it is, or its own; None: neither is known


@dataclass(frozen=True, slots=True)
class Assignment:
    """A module's attribute was given another parameter or module than it had, or one that stands elsewhere too."""

    index: int  # position among the events: it happened before the event of this index
    site: SiteId | None
    name: str  # "weight"
    old: tuple[TensorId, ...]  # the tensors that the attribute held: itself, or the parameters of a module
    new: tuple[TensorId, ...]
    shared: bool  # the new value already stood in a module
