"""Defines the facts about values that a graph holds when a backward pass begins, which only a run with `--training`
records.

Few passes are looked at. `node` is the sequence number of a node of the graph: it leads to the call that made it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import NonNegative


@dataclass(frozen=True, slots=True)
class NormalizedTables:
    """The only two calls of a pass that normalise a square table of some size, as by `log_softmax()`."""

    index: int  # of the first event of the pass
    first: NonNegative  # node
    second: NonNegative  # node
    rows: NonNegative
    are_equal: bool  # both give each row of one table the same values, and the table is not its own transpose


@dataclass(frozen=True, slots=True)
class ChosenOwn:
    """A call that takes the greatest or the least element of each row, or column, of a square table.

    Or one that takes as many rows of a matrix as it has: they may be those of such elements.
    """

    index: int  # of the first event of the pass
    node: NonNegative
    rows: NonNegative
    own: NonNegative  # of these, the ones whose chosen element is the one of the row itself
    several: int  # of these, the ones that have other elements to choose from, which no mask has set; -1: not known


@dataclass(frozen=True, slots=True)
class ChosenPartners:
    """A call that takes one element of each row of a square table: that of a partner of the row."""

    index: int  # of the first event of the pass
    node: NonNegative
    rows: NonNegative
    distance: NonNegative  # 1: rows 0 and 1, 2 and 3 and so on are partners; half of the rows: those so far apart


@dataclass(frozen=True, slots=True)
class CountedTargets:
    """A loss of classes that counts some places only, in a model that looks up an id for each place."""

    index: int  # of the first event of the pass
    node: NonNegative
    places: NonNegative  # that count
    target: int  # the only one of these; it is the id that is looked up there, and nowhere else; -1: there is none


@dataclass(frozen=True, slots=True)
class PickedSteps:
    """A call that takes one step of each row of a batch."""

    index: int  # of the first event of the pass
    node: NonNegative
    steps: tuple[int, ...]  # of each row
    size: NonNegative  # so many steps there are
    lengths: tuple[int, ...]  # of rows of as many ids, up to the padding at their end; (): they are not known


@dataclass(frozen=True, slots=True)
class SummedRows:
    """A sum that adds to the places of an index, and the calls that take rows by an index of as many items."""

    index: int  # of the first event of the pass
    node: NonNegative  # of the sum
    alike: tuple[NonNegative, ...]  # nodes of the calls whose index has the same items
    others: NonNegative  # calls with an index of other items


@dataclass(frozen=True, slots=True)
class OwnIds:
    """A loss of classes, in a model that looks up as many ids as the loss has targets."""

    index: int  # of the first event of the pass
    node: NonNegative  # of the loss
    lookup: NonNegative  # node
    are_equal: bool  # each target that counts is the id at its place, and the ids of a row are not all alike


@dataclass(frozen=True, slots=True)
class ColumnDerivatives:
    """The derivatives of each column of a gradient, before a pass that differentiates the sum of them, in a second run.

    They are by the columns of the tensor that the gradient belongs to.
    """

    index: int
    root: NonNegative  # the sequence number of the node of the pass's root
    own: tuple[float, ...]  # the L2 norm of the derivatives of each column by the same column
    mixed: tuple[float, ...]  # that of the derivatives of all other columns together by this column
