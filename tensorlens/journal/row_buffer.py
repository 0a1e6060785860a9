"""Collects the rows of a run. Each becomes a plain tuple, `(tag, *fields)`, because `marshal` writes plain values only.

This module imports no torch: the command's own process reads the journal of the child that runs the script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple
from enum import IntEnum
from typing import Any, Concatenate, ParamSpec

from tensorlens.journal import memory_rows, rows, sample_rows
from tensorlens.records.observations import TABLES

P = ParamSpec("P")


class Tag(IntEnum):
    """The first item of each row. A number is never given to another kind of row."""

    VERSIONS = 1
    SITE = 2
    SOURCE = 3
    CLAIM = 4
    END = 5
    OUTCOME = 6
    # Tensors
    STORAGE = 10
    TENSOR = 11
    ALIVE = 12
    TENSORS = 13
    # Calls
    CALL = 20
    CALL_TEMPLATE = 21
    WITHIN = 22
    # Backward passes
    BACKWARD_START = 30
    BACKWARD = 31
    PASS = 32
    UNCOMPARED = 33
    STEP_SAMPLE = 34
    # Other events
    GRAD_MODE = 40
    REGION = 41
    CHANGE = 42
    NOTICE = 43
    GAP = 44
    # Failures and their context
    FAILURE = 50
    VALUES = 51
    ARGUMENTS = 52
    DEAD_ENDS = 53
    ASSIGNMENT = 54
    # The user's callbacks
    FUNCTION = 60
    REGISTRATION = 61
    CALLBACK_RUN = 62
    # Every other fact
    FACT = 70


ROW_TYPES: dict[int, Any] = {
    Tag.VERSIONS: rows.VersionsRow,
    Tag.SITE: rows.SiteRow,
    Tag.SOURCE: rows.SourceRow,
    Tag.CLAIM: rows.ClaimRow,
    Tag.END: rows.EndRow,
    Tag.OUTCOME: rows.OutcomeRow,
    Tag.STORAGE: memory_rows.StorageRow,
    Tag.TENSOR: memory_rows.TensorRow,
    Tag.ALIVE: memory_rows.AliveRow,
    Tag.TENSORS: memory_rows.TensorsRow,
    Tag.CALL: rows.CallRow,
    Tag.CALL_TEMPLATE: rows.CallTemplateRow,
    Tag.WITHIN: rows.WithinRow,
    Tag.BACKWARD_START: rows.BackwardStartRow,
    Tag.BACKWARD: rows.BackwardRow,
    Tag.PASS: sample_rows.PassRow,
    Tag.UNCOMPARED: sample_rows.UncomparedRow,
    Tag.STEP_SAMPLE: sample_rows.StepSampleRow,
    Tag.GRAD_MODE: rows.GradModeRow,
    Tag.REGION: rows.RegionRow,
    Tag.CHANGE: rows.ChangeRow,
    Tag.NOTICE: rows.NoticeRow,
    Tag.GAP: rows.GapRow,
    Tag.FAILURE: rows.FailureRow,
    Tag.VALUES: rows.ValuesRow,
    Tag.ARGUMENTS: rows.ArgumentsRow,
    Tag.DEAD_ENDS: rows.DeadEndsRow,
    Tag.ASSIGNMENT: rows.AssignmentRow,
    Tag.FUNCTION: rows.FunctionRow,
    Tag.REGISTRATION: rows.RegistrationRow,
    Tag.CALLBACK_RUN: rows.CallbackRunRow,
    Tag.FACT: rows.FactRow,
}
_TAGS: dict[Any, int] = {row_type: int(tag) for tag, row_type in ROW_TYPES.items()}
_SIZES: dict[int, tuple[Any, int]] = {
    int(tag): (row_type, 1 + len(row_type._fields)) for tag, row_type in ROW_TYPES.items()
}
_FACT = int(Tag.FACT)


def nothing_waits() -> None:
    """Does nothing: no compact calls wait to be put into the rows."""


class RowBuffer(list[Any]):
    """The rows that wait to be written to the journal: plain tuples, the ints of compact calls, and bytes.

    Bytes are the numbers of several compact calls, 8 bytes each. The compiled fast path keeps the latest of these to
    itself until `settle` is called. Every method here calls it, and so must whoever takes rows out.
    """

    __slots__ = ("append_all", "put", "settle")

    def __init__(self) -> None:
        super().__init__()
        self.settle: Callable[[], object] = nothing_waits
        self.put: Callable[[tuple[Any, ...]], object] | None = None
        """Settles and appends a row, while one thread writes. None: there is no compiled fast path, or more threads."""
        self.append_all: Callable[[Iterable[Any]], object] | None = None
        """Appends instead, if several threads write."""

    def write(self, row_type: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Appends a row, given by its class and its fields. With fields by position no object is made of it."""
        fields: Any = tuple(row_type(*args, **kwargs)) if kwargs else args  # type: ignore[arg-type]
        row = (_TAGS[row_type],) + fields  # noqa: RUF005 - half the time of `(tag, *fields)`
        if self.put is not None:
            self.put(row)
            return
        self.settle()
        if self.append_all is None:
            self.append(row)
        else:
            self.append_all((row,))

    def write_fact(self, record: Callable[Concatenate[int, P], object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Appends a fact: a record of `records.observations`, given by its class and all its fields but `index`."""
        self.settle()
        fields: Any = astuple(record(0, *args, **kwargs))[1:] if kwargs else args  # type: ignore[call-overload]
        self.append((_FACT, TABLES[record], fields))  # type: ignore[index]

    def write_call(self, numbers: Iterable[int]) -> None:
        """Appends the numbers of a compact call."""
        self.settle()
        if self.append_all is None:
            self.extend(numbers)
        else:
            self.append_all(numbers)


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a NamedTuple of `rows` as it is in the journal."""
    return (_TAGS[row.__class__], *row)


def typed(row: tuple[Any, ...]) -> Any:
    """Returns the NamedTuple of a row from the journal.

    Raises:
        KeyError: there is no such tag.
        TypeError: the row has too few or too many fields.
    """
    row_type, size = _SIZES[row[0]]
    if len(row) != size:
        raise TypeError(f"a row of {len(row)} items is no {row_type.__name__}")
    return tuple.__new__(row_type, row[1:])  # `_make` takes three times as long
