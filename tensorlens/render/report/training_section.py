"""Writes what `--training` measured: what stands out, and a table with one row for each module or parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ModuleStatistics, ParameterRow, measured_training
from tensorlens.records.model import Span, Trace
from tensorlens.records.report import Report, StandingOut
from tensorlens.records.source import shown_path
from tensorlens.render.report.headline import count
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import HouseTable, hanging

HEADINGS = ("module", "parameters", "loss line", "gradient norm", "zeros", "optimizer", "moved")
_BARS = "▁▂▃▄▅▆▇█"
_POINTS = 8  # of a sparkline
NONE, UNKNOWN = "none", "?"


def training_parts(report: Report, everything: bool) -> list[RenderableType]:
    """Returns the sentences and the table; nothing if the training was not measured."""
    training = measured_training(TraceIndex(report.trace))
    if training is None:
        return []
    parts: list[RenderableType] = [Text.assemble(("training", "heading"), f"   {safe(summary(training))}")]
    parts += [hanging(Text("  "), Text(safe(text))) for text in sentences(report)]
    table = HouseTable(["\n".join(each.rsplit(" ", 1)) for each in HEADINGS], ["name"], right=(1, 4, 6))
    for row in training_cells(training, everything):
        table.add(*row)
    return [*parts, Text(""), table] if len(table) else parts


def summary(training: MeasuredTraining) -> str:
    """Says how many steps and passes were measured."""
    measured = training.measured
    optimizers = len({group.optimizer for group in training.groups})
    passes = f"{measured.passes} backward pass{'' if measured.passes == 1 else 'es'}"
    origins = training.facts.trace.inspection.origins
    searched = "; run again to find the first NaN or infinity" if origins and origins[0].searched else ""
    return f"{passes}, {count(measured.steps, 'step')} of {count(optimizers, 'optimizer')}{searched}"


def sentences(report: Report) -> Iterator[str]:
    """Yields what stands out, each with its line: "`head.weight` is in no optimizer, but gets gradients (line 5)"."""
    for each in report.standing_out or ():
        yield f"{each.text}{_places(each, report.trace)}"


def _places(each: StandingOut, trace: Trace) -> str:
    if not each.labels:
        return ""
    main, *others = each.labels
    more = [f"{label.text}: {_line(label.span, trace)}" for label in others]
    return f" ({'; '.join((_line(main.span, trace), *more))})"


def _line(span: Span, trace: Trace) -> str:
    """Returns a line of the script: "line 5"; of another file, with its name: "net.py:5"."""
    path = shown_path(span.file, trace.script.folder)
    return f"line {span.line}" if path == trace.script.path else f"{path}:{span.line}"


def training_cells(training: MeasuredTraining, everything: bool) -> list[list[str]]:
    """Returns the cells of the table: a row for each module or, with `everything`, for each parameter."""
    single = (ModuleStatistics(row.name, (row,)) for row in training.rows)
    return [_cells(training, module) for module in (single if everything else training.modules)]


def _cells(training: MeasuredTraining, module: ModuleStatistics) -> list[str]:
    rows = module.rows
    return [
        module.name,
        str(len(rows)),
        _lines_of(training, sorted({site for row in rows for site in row.passes})) or NONE,
        _norms(module),
        _zeros(rows),
        _optimizers(training, rows),
        _moved(module),
    ]


def _lines_of(training: MeasuredTraining, sites: Sequence[int]) -> str:
    spans = [span for site in sites if (span := training.facts.span(site)) is not None]
    return ", ".join(dict.fromkeys(str(span.line) for span in spans))


def _norms(module: ModuleStatistics) -> str:
    if not any(row.statistics is not None and row.statistics.filled for row in module.rows):
        return NONE
    norms = module.norms
    if not norms:
        return UNKNOWN
    return f"{norms[0]:.2g} -> {norms[-1]:.2g} {sparkline(norms)}" if len(norms) > 1 else f"{norms[0]:.2g}"


def sparkline(values: Sequence[float]) -> str:
    """Draws a series as at most eight bars between zero and the highest value."""
    points = [values[place * len(values) // _POINTS] for place in range(_POINTS)] if len(values) > _POINTS else values
    most = max(points)
    return "".join(_BARS[min(int(value / most * len(_BARS)), len(_BARS) - 1)] if most else _BARS[0] for value in points)


def _zeros(rows: Sequence[ParameterRow]) -> str:
    """Returns the share of exact zeros in the gradients, weighted by the sizes of the parameters."""
    known = [(row.statistics, row.movement) for row in rows if row.statistics is not None and row.statistics.filled]
    sizes = [1 if movement is None else movement.elements for _, movement in known]
    total = sum(sizes)
    if not total:
        return ""
    return _percent(sum(each.zeros * size for (each, _), size in zip(known, sizes, strict=True)) / total)


def _percent(share: float) -> str:
    """Returns a share in percent. Only a share of exactly 0 or 1 is written as such."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    percent = 100 * share
    if percent < 0.01:
        return "< 0.01 %"
    return f"{min(percent, 99.9):.2g} %" if percent < 10 else f"{min(percent, 99.9):.3g} %"


def _optimizers(training: MeasuredTraining, rows: Sequence[ParameterRow]) -> str:
    found: dict[str, None] = {}
    for row in rows:
        if row.group is None:
            found[NONE if row.requires_grad else "none (frozen)"] = None
        else:
            span = training.facts.span(row.group.site)
            line = "" if span is None else f", line {span.line}"
            found[f"{row.group.name}{line}{'' if row.group.steps else ', no step'}"] = None
    return "\n".join(found)


def _moved(module: ModuleStatistics) -> str:
    moved = module.moved
    if moved is None:
        return UNKNOWN if any(row.statistics is not None for row in module.rows) else "no"
    distance, size = moved
    if not distance:
        return "no"
    return _percent(distance / size) if size else f"{distance:.2g}"
