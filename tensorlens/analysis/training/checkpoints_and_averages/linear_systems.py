"""Solves small systems of linear equations."""

from __future__ import annotations

_SMALLEST = 1e-10  # of a pivot, beside the largest of the matrix


def solved(matrix: list[list[float]], target: list[float]) -> list[float] | None:
    """Returns the solution of a symmetric system; None if several numbers solve it, or nearly do."""
    rows = [[*row, value] for row, value in zip(matrix, target, strict=True)]
    count = len(rows)
    largest = max((abs(value) for row in matrix for value in row), default=0.0)
    for place in range(count):
        best = max(range(place, count), key=lambda row: abs(rows[row][place]))
        rows[place], rows[best] = rows[best], rows[place]
        pivot = rows[place][place]
        if abs(pivot) <= _SMALLEST * largest:
            return None
        for row in range(count):
            if row != place:
                factor = rows[row][place] / pivot
                rows[row] = [value - factor * other for value, other in zip(rows[row], rows[place], strict=True)]
    return [rows[place][count] / rows[place][place] for place in range(count)]
