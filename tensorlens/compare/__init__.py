"""Measures two or more operations on a tensor side by side. Imports no torch: a child process measures.

For the command line:

    from tensorlens.compare import ProbeOptions, compare, list_probes, parse_shape
    from tensorlens.render.comparison import render_comparison
    from tensorlens.render.options import RenderOptions

    comparison = compare(["clone", "x.detach()"], ProbeOptions(shape=parse_shape("2,3")))  # or UsageError
    print(render_comparison(comparison, "table", RenderOptions(width=80, color=False)), end="")
    for probe in list_probes(): ...  # .name, .label, .group, .question
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from tensorlens.compare import probe_process
from tensorlens.compare.comparison_records import Comparison, Operand
from tensorlens.compare.comparison_rows import rows_of
from tensorlens.compare.probe.probes import PROBES, Probe
from tensorlens.compare.summary import summarize
from tensorlens.errors import UsageError
from tensorlens.records.version import __version__

__all__ = ["Comparison", "ProbeOptions", "compare", "list_probes"]


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """The properties of the input `x`. One that is None varies over several inputs, which shows the answers that depend
    on it."""

    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    requires_grad: bool | None = None
    leaf: bool | None = None
    contiguous: bool | None = None
    view: bool | None = None
    size: int = 1_000_000  # elements of the input that memory and time are measured on
    timeout: float = 30.0  # seconds for one answer

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"--size must be at least 1, not {self.size}")
        if self.timeout <= 0:
            raise UsageError(f"--timeout must be more than 0, not {self.timeout:g}")
        if self.shape is not None and any(extent < 0 for extent in self.shape):
            raise UsageError(f"a shape has no negative sizes: {self.shape}")


def parse_shape(text: str) -> tuple[int, ...]:
    """Reads a shape: `2,3` or `2x3` or `(2, 3)`; `()` for a scalar."""
    inner = text.strip().removeprefix("(").removesuffix(")").strip()
    parts = [part for part in re.split(r"[,x\s]+", inner) if part]
    if not all(part.isdecimal() for part in parts) or not (parts or text.strip() == "()"):
        raise UsageError(f'not a shape: "{text}"; write it as 2,3')
    return tuple(int(part) for part in parts)


def compare(
    operands: Sequence[str],
    options: ProbeOptions | None = None,
    on_answer: Callable[[int, int], None] = lambda answered, asked: None,
) -> Comparison:
    """Asks every probe about every operand. `on_answer` is called with the number of answers, and of all questions."""
    if len(operands) < 2:
        raise UsageError('compare takes two operands or more, such as: clone detach "x[1:]"')
    settings = asdict(options or ProbeOptions())
    timeout = settings.pop("timeout")

    def note(measured: probe_process.Measured) -> None:
        on_answer(len(measured.cells), len(PROBES) * len(measured.operands) * len(measured.inputs))

    return comparison_of(probe_process.measure(operands, settings, timeout, note), operands)


def comparison_of(measured: probe_process.Measured, texts: Sequence[str]) -> Comparison:
    """Makes the rows and the summary from the measured answers."""
    resolved = measured.operands or tuple(Operand(text, text, "code") for text in texts)
    rows = rows_of(PROBES, len(resolved), measured.cells, measured.crashed)
    return Comparison(
        tensorlens=__version__,
        torch=measured.torch,
        operands=resolved,
        inputs=measured.inputs,
        main=0,
        rows=rows,
        summary=summarize(resolved, measured.inputs, rows),
    )


def list_probes() -> tuple[Probe, ...]:
    """Returns all probes, in the order of the rows."""
    return tuple(PROBES)
