"""Compares the options of an optimizer's groups with those that a script has written to where no step reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

_NUMBERS = (int, float)


@dataclass(frozen=True, slots=True)
class MadeOptions:
    """The options of an optimizer when it was made: its defaults, and those of its groups."""

    defaults: dict[str, float]
    groups: tuple[dict[str, float], ...]

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer) -> MadeOptions | None:
        """Returns those of an optimizer of PyTorch itself, whose steps read its groups only."""
        if not f"{type(optimizer).__module__}.".startswith("torch.optim."):
            return None
        attributes = vars(optimizer)
        defaults = {name: value for name, value in _numbers(optimizer.defaults) if name not in attributes}
        return cls(defaults, tuple(dict(_numbers(group)) for group in optimizer.param_groups))

    def replaced_rate(self, optimizer: torch.optim.Optimizer) -> tuple[float, float, bool] | None:
        """Returns the first learning rate that a group does not have any more, the one that it has, and whether a
        scheduler began with the first."""
        for then, now in zip(self.groups, optimizer.param_groups, strict=False):
            made, rate = then.get("lr"), now.get("lr")
            if made is None or rate is None or type(rate) not in _NUMBERS:
                continue
            if rate != made:
                return made, float(rate), now.get("initial_lr") == made
        return None

    def unread(self, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, str, float, float]]:
        """Yields (place, name, value, value of the groups) of the options that have got another value where no step
        reads it, while the groups have all kept theirs."""
        attributes = vars(optimizer)
        for name, first in self.defaults.items():
            kept = {group[name] for group in self.groups if name in group}
            same = len(self.groups) == len(optimizer.param_groups) and all(
                now.get(name) == then.get(name) for now, then in zip(optimizer.param_groups, self.groups, strict=True)
            )
            if not same or kept != {first}:
                continue
            for place, options in (("defaults", optimizer.defaults), ("attribute", attributes)):
                value = options.get(name, first)
                if type(value) in _NUMBERS and value != first:
                    yield place, name, float(value), float(first)


def _numbers(options: dict[str, Any]) -> Iterable[tuple[str, float]]:
    return ((name, value) for name, value in options.items() if type(value) in _NUMBERS)
