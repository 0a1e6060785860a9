"""Names ranks, and parameters, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MOST = 6  # ranks, ranges of ranks, or names that are listed


def names_text(names: Sequence[str]) -> str:
    """Returns "`a`, `b` and 3 more"."""
    shown = ", ".join(f"`{name}`" for name in names[:_MOST])
    return shown + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")


def ranks_text(numbers: Sequence[int], one: str = "rank", several: str = "ranks") -> str:
    """Returns `rank 1`, `ranks 0 and 2`, `ranks 0 to 3`, `ranks 0-3, 8 and 9`, `128 ranks (0, 2, 4, …, 254)`."""
    if len(numbers) == 1:
        return f"{one} {numbers[0]}"
    ranges = rank_ranges(numbers)
    if len(ranges) == 1 and len(numbers) > 2:
        return f"{several} {min(numbers)} to {max(numbers)}"
    if len(ranges) > _MOST:
        return f"{len(set(numbers))} {several} ({short_ranks(numbers)})"
    return f"{several} {', '.join(ranges[:-1])} and {ranges[-1]}"


def short_ranks(numbers: Sequence[int]) -> str:
    """Returns the ranks for a cell of a table: `0-254`, `0, 2, 4, …, 254`."""
    ranges = rank_ranges(numbers)
    return ", ".join(ranges if len(ranges) <= _MOST else [*ranges[:3], "…", ranges[-1]])


def rank_ranges(numbers: Iterable[int]) -> list[str]:
    """Returns the ranks in order, three or more in a row as a range: `["0-3", "8", "9"]`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [each for run in runs for each in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
