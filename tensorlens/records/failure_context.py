"""Records what surrounded a failure: plain values, arguments, nodes of the graph, saved tensors, assignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.fields import SiteId, StorageId, TensorId


@dataclass(frozen=True, slots=True)
class Value:
    """A plain Python or NumPy value that the failing expression reads."""

    name: str  # "values"; "" if it has no name there
    type: str  # "list", "ndarray", "generator", "exhausted generator"
    site: SiteId | None  # where the name was bound to it
    used: SiteId | None  # where the name was read last before the failure


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor argument of a failing Python function of torch, by the name of its parameter."""

    name: str  # "weight"
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph of a failed backward pass: the last one that ran, or one without a derivative."""

    name: str  # "CdistBackwardBackward0"
    sequence: int | None  # its own; without a derivative: that of the forward node whose backward made it


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor saved for backward by a node of a graph whose pass failed, read after the failure."""

    node: str  # "SigmoidBackward0"
    sequence: int
    slot: str  # "result", "self", "saved_tensors[0]"; "output 0" of a node whose gradient was NaN
    tensor: TensorId | None  # the live tensor object with the same storage and version counter, if any
    storage: StorageId | None
    shape: tuple[int, ...]
    expected: int | None  # saved at this version; None: not reported
    found: int | None  # its version at the check
    problem: Literal["version", "freed", "nan", "other"] | None  # None: intact
    message: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment to an attribute of a module: it puts another parameter or module there, or one that is shared."""

    index: int  # it happened before the event of this index
    site: SiteId | None
    name: str  # "weight"
    old: tuple[TensorId, ...]  # the attribute's tensors before: itself, or the parameters of a module
    new: tuple[TensorId, ...]
    shared: bool  # another module's attribute is the same object
