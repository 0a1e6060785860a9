"""Defines the facts about arrays of NumPy beside tensors that only a run with `--training` records."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import NonNegative, SiteId, TensorId


@dataclass(frozen=True, slots=True)
class ArraysBeside:
    """The names of arrays (n,) in the frame that makes an array of a tensor (n, 1)."""

    index: int  # of the event after the call that makes it
    rows: NonNegative
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenArray:
    """A NumPy array on whose memory tensors were made again after its values had changed."""

    index: int
    number: NonNegative
    site: SiteId | None  # the line that made the first tensor
    tensor: TensorId  # that tensor
    parts: NonNegative  # parts of the array that tensors were made on
    given: NonNegative  # tensors that were made on a part again
    changed: NonNegative  # of these, the ones that found other values than the one before
    outdated: NonNegative = 0  # the most tensors alive at once that were made before a part got its last values
    outdated_site: SiteId | None = None  # the line that made most of these


@dataclass(frozen=True, slots=True)
class EntriesOfOneArray:
    """A list or deque that grows, whose entries hold one NumPy array at two places, also the same one as others.

    Two lists may hold the parts of the entries.
    """

    index: int
    number: NonNegative
    name: str  # the last part of the name that leads to it; of several lists, their names
    places: tuple[str, str]  # in an entry: "0", "next_obs"; of several lists, the names of two
    entries: NonNegative
    twice: NonNegative  # of these, the ones with one array at both places
    arrays: NonNegative  # different arrays of these
    changed: NonNegative  # entries that kept their place while their array got other values; few are looked at
