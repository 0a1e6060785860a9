"""Compares the modules that ranks give to `DistributedDataParallel`: it treats parameters at equal places as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tensorlens.analysis.ranks.replicas import Replica, ReplicaGroup

Kind = Literal["only here", "form", "frozen", "order"]


@dataclass(frozen=True)
class ModelDifference:
    """Says how the parameters of one rank differ from those of the lowest rank.

    `names` are the parameters that it is about; of an order, the names at the first place that differs.
    """

    kind: Kind
    one: Replica
    other: Replica
    names: tuple[str, ...]

    def tensor(self, replica: Replica, name: str) -> int | None:
        """Returns the tensor of a name on a rank, if the rank has it."""
        names = replica.wrapped.names
        return replica.wrapped.tensors[names.index(name)] if name in names else None

    def form(self, replica: Replica, name: str) -> str:
        return replica.wrapped.forms[replica.wrapped.names.index(name)]


def model_differences(group: ReplicaGroup) -> Iterator[ModelDifference]:
    """Yields how the module of each rank differs from that of the lowest rank: the first kind that applies."""
    one = group.replicas[0]
    for other in group.replicas[1:]:
        found = _difference(one, other)
        if found is not None:
            yield found


def _difference(one: Replica, other: Replica) -> ModelDifference | None:
    here, there = _parameters(one), _parameters(other)
    if list(here.items()) == list(there.items()):
        return None
    if [*here.values()] == [*there.values()] and here.keys() != there.keys():
        return None  # they have other names, at the same places: that is no difference to the wrapper
    for mine, theirs, has, lacks in ((there, here, other, one), (here, there, one, other)):
        if only := tuple(name for name in mine if name not in theirs):
            return ModelDifference("only here", lacks, has, only)
    formed = tuple(name for name in here if here[name][1] != there[name][1])
    frozen = tuple(name for name in here if here[name][0] != there[name][0])
    if formed or frozen:
        return ModelDifference("form" if formed else "frozen", one, other, formed or frozen)
    first = next(pair for pair in zip(here, there, strict=True) if pair[0] != pair[1])
    return ModelDifference("order", one, other, first)


def _parameters(replica: Replica) -> dict[str, tuple[str, str]]:
    """Maps the name of each parameter to (kind, form)."""
    wrapped = replica.wrapped
    found = zip(wrapped.names, wrapped.kinds, wrapped.forms, strict=True)
    return {name: (kind, form) for name, kind, form in found if kind != "buffer"}
