"""Groups PyTorch's operations, modules, optimizers and tests: how to compare one of each, and how many every day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from unchanged import checks, modules, operations, optimizers
from unchanged.observing import Outcome, added

SOME = 4  # samples in each dtype where an operation is called in another way
FEW = 2  # samples that a check takes


@dataclass(frozen=True)
class Group:
    name: str
    database: Callable[[], list[Any]]
    compare: Callable[[Any, int | None], Outcome]
    """One entry of the database, with at most so many samples."""
    daily: int
    """Every so many-th entry is compared every day, with one sample."""
    parts: int = 1
    """Tests that `make unchanged` divides it among."""
    limit: int | None = None
    """Samples that `make unchanged` takes of each entry and dtype."""

    def daily_outcome(self) -> tuple[int, Outcome]:
        return self._outcome(self.database()[:: self.daily], 1)

    def outcome(self, part: int) -> tuple[int, Outcome]:
        return self._outcome(self.database()[part :: self.parts], self.limit)

    def _outcome(self, entries: list[Any], limit: int | None) -> tuple[int, Outcome]:
        """Counts the comparisons by their kind."""
        return len(entries), added(self.compare(entry, limit) for entry in entries)


def op_db() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def _custom_db() -> list[Any]:
    """Custom Functions, custom operators and higher-order operators."""
    from torch.testing._internal.autograd_function_db import autograd_function_db
    from torch.testing._internal.custom_op_db import custom_op_db
    from torch.testing._internal.hop_db import hop_db

    return [*autograd_function_db, *custom_op_db, *hop_db]


def _custom_op_db() -> list[Any]:
    from torch.testing._internal.custom_op_db import custom_op_db

    return list(custom_op_db)


def _module_db() -> list[Any]:
    from torch.testing._internal.common_modules import module_db

    return list(module_db)


def _optim_db() -> list[Any]:
    from torch.testing._internal.common_optimizers import optim_db

    return list(optim_db)


def _operation(way: str, dtypes: tuple[torch.dtype, ...], op: Any, limit: int | None) -> Outcome:
    return added(operations.compare(op, dtype, limit, way=way) for dtype in dtypes if dtype in op.dtypes)


def _way(way: str) -> Group:
    only = way == operations.FIRST
    return Group(
        way,
        lambda: [op for op in op_db() if operations.has(op, way)],
        partial(_operation, way, operations.DTYPES),
        daily=16 if only else 48,
        parts=16 if only else 2,
        limit=None if only else SOME,
    )


def _check(name: str) -> Group:
    return Group(
        name,
        lambda: [op for op in op_db() if checks.has(op, name)],
        partial(checks.compare_check, name),
        daily=64,
        parts=2,
        limit=FEW,
    )


GROUPS = (
    *(_way(way) for way in operations.WAYS),
    Group(
        "operations on what they must refuse",
        lambda: [op for op in op_db() if op.error_inputs_func is not None],
        operations.compare_refused,
        daily=16,
    ),
    Group(
        "custom functions and operators",
        _custom_db,
        partial(_operation, operations.FIRST, (torch.float64, torch.float32)),
        daily=3,
    ),
    Group("modules", _module_db, modules.compare, daily=8),
    Group("optimizers", _optim_db, optimizers.compare, daily=2),
    Group("cases of `test_nn.py`", checks.module_cases, checks.compare_module, daily=20, parts=2),
    *(_check(name) for name in checks.CHECKS),
    Group("`opcheck` of custom operators", _custom_op_db, checks.compare_opcheck, daily=11, limit=FEW),
)
