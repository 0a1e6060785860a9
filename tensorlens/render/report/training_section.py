"""Writes what `--training` measured: what stands out, and a table with one row for each module or parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from os.path import basename

from rich.console import RenderableType
from rich.text import Text

from tensorlens.analysis.trace_index import index_of
from tensorlens.analysis.training.changed_gradients import gradient_changes
from tensorlens.analysis.training.frozen import frozen_at
from tensorlens.analysis.training.held_memory import bytes_text, most_memory
from tensorlens.analysis.training.measured import MeasuredTraining, ModuleStatistics, ParameterRow, measured_training
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.untrained import Untrained, untrained
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.model import Span, Trace
from tensorlens.records.report import Report, StandingOut
from tensorlens.records.source import shown_path
from tensorlens.render.percent import percent_text
from tensorlens.render.report.headline import count
from tensorlens.render.report.training_losses import losses_table, shares_text
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import HouseTable, hanging

HEADINGS = ("module", "parameters", "loss line", "gradient norm", "zeros", "optimizer", "moved")
_BARS = "▁▂▃▄▅▆▇█"
_POINTS = 8  # of a sparkline
_SHOWN_BYTES = 1_000_000
NONE, UNKNOWN = "none", "?"


def training_parts(report: Report, everything: bool) -> list[RenderableType]:
    """Returns the sentences and the tables; nothing if the training was not measured."""
    training = measured_training(index_of(report.trace))
    if training is None:
        return []
    parts: list[RenderableType] = [Text.assemble(("training", "heading"), f"   {safe(summary(training))}")]
    parts += [hanging(Text("  "), Text(safe(text))) for text in sentences(report)]
    table = HouseTable(["\n".join(each.rsplit(" ", 1)) for each in HEADINGS], ["name"], right=(1, 4, 6))
    rows = training_cells(training, everything)
    for row in rows:
        table.add(*row)
    tables = [each for shown in (table, losses_table(training)) if len(shown) for each in (Text(""), shown)]
    quiet = [
        hanging(Text("  "), Text(safe(text), "quiet"))
        for text in (_legend(rows), _unknown_text(rows), shares_text(training), memory_text(training))
        if text
    ]
    return [*parts, *tables, *([Text("")] if quiet else []), *quiet]


def summary(training: MeasuredTraining) -> str:
    """Says how many steps and passes were measured."""
    measured = training.measured
    optimizers = len({group.optimizer for group in training.groups})
    passes = f"{measured.passes} backward pass{'' if measured.passes == 1 else 'es'}"
    lines = _lines_of(training, sorted(change.call.site for change in gradient_changes(training)))
    changed = f", gradients changed at line{'s' if ',' in lines else ''} {lines}" if lines else ""
    origins = training.facts.trace.inspection.origins
    inspection = training.facts.trace.inspection
    again = ["find the first NaN or infinity"] if origins and origins[0].searched else []
    again += ["measure each term of the loss"] if inspection.term_gradients else []
    again += ["differentiate the columns of gradients"] if inspection.column_derivatives else []
    again += ["check the custom Functions"] if inspection.functions_checked else []
    searched = f"; a second run, to {' and to '.join(again)}" if again else ""
    return f"{passes}, {count(measured.steps, 'step')} of {count(optimizers, 'optimizer')}{changed}{searched}"


def _legend(rows: list[list[str]]) -> str | None:
    """Says what the percentages of the table are of."""
    texts = {
        4: "zeros: elements of the gradients that are exactly zero",
        6: "moved: distance from the first values to the last, in percent of the norm of the first",
    }
    used = [text for column, text in texts.items() if any("%" in row[column] for row in rows)]
    return "; ".join(used) if used else None


def _unknown_text(rows: list[list[str]]) -> str | None:
    is_unknown = any(cell.split("\n")[0] == UNKNOWN for row in rows for cell in row)
    return f"{UNKNOWN}: not measured, or not at the same steps for all parameters of the row" if is_unknown else None


def memory_text(training: MeasuredTraining) -> str | None:
    """Says how much memory live tensors and graphs had at the look that found most, and at which lines most of it
    began. None if that is less than `_SHOWN_BYTES`."""
    facts = training.facts
    most = most_memory(facts)
    if most is None or most.look.size + most.look.saved < _SHOWN_BYTES:
        return None
    look, trace = most.look, facts.trace
    begins = f"backward pass {look.begun}" if look.begun else f"step {look.step}"
    made = [f"{_line(trace.sites[site].span, trace)} made {bytes_text(size)}" for site, size in most.made]
    live = f"{bytes_text(look.size)} in {count(look.live, 'live tensor')}"
    text = f"when {begins} begins, the most of {count(len(trace.inspection.memory), 'look')}"
    if not look.saved:
        return f"memory: {live} {text}" + (f": {', '.join(made)}" if made else "")
    saved = [f"{_line(trace.sites[site].span, trace)} {bytes_text(size)}" for site, size in most.saved]
    least = "" if look.is_complete else "at least "
    text = f"memory: {least}{bytes_text(look.size + look.saved)} {text}: {live}"
    text += f" ({', '.join(made)})" if made else ""
    text += f", and {least}{bytes_text(look.saved)} that only graphs hold, saved for backward"
    return text + (f": {', '.join(saved)}" if saved else "")


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
    return f"line {span.line}" if path == basename(trace.script.path) else f"{path}:{span.line}"


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
        "\n".join(filter(None, [_norms(module), _not_finite(rows), *_ends(training, rows)])),
        _zeros(rows),
        _optimizers(training, rows),
        _moved(training, module),
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


def _not_finite(rows: Sequence[ParameterRow]) -> str:
    """Says how many gradients of the worst parameter have an infinity or NaN, which the norms leave out."""
    known = [row.statistics for row in rows if row.statistics is not None]
    worst = max(known, key=lambda each: each.nonfinite, default=None)
    return f"not finite: {worst.nonfinite:,} of {worst.filled:,}" if worst is not None and worst.nonfinite else ""


def _ends(training: MeasuredTraining, rows: Sequence[ParameterRow]) -> list[str]:
    """Says where the paths of the parameters end that never had a gradient: "ends at line 14: detach()"."""
    numbers = {row.tensor for row in rows}
    found = {_end(training, each): None for each in untrained(training) if each.row.tensor in numbers and each.kind}
    return list(found)


def _end(training: MeasuredTraining, each: Untrained) -> str:
    if each.end is not None and each.kind == "unasked":
        return f"not asked for at line {_lines_of(training, [each.end.backward.site])}"
    span = None if each.call is None else training.facts.span(each.call.site)
    if each.call is None or span is None:
        return "no call uses it"
    texts = {"unused": "no loss uses it", "unrecorded": "gradients off", "late": "frozen then"}
    text = texts.get(each.kind) or ("gradients off" if each.call.mode != "grad" else op_text(each.call.op).strip("`"))
    return f"ends at line {span.line}: {text}"


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
    return percent_text(sum(each.zeros * size for (each, _), size in zip(known, sizes, strict=True)) / total)


def _optimizers(training: MeasuredTraining, rows: Sequence[ParameterRow]) -> str:
    found: dict[str, None] = {}
    for row in rows:
        if not row.requires_grad:
            call = frozen_at(training.facts, row.tensor)
            frozen = None if call is None else training.facts.span(call.site)
            found["frozen" if frozen is None else f"frozen, line {frozen.line}"] = None
        elif row.group is None:
            found[NONE] = None
        if row.group is not None:
            span = training.facts.span(row.group.site)
            line = "" if span is None else f", line {span.line}"
            found[f"{row.group.name}{line}{'' if row.group.steps else ', no step'}"] = None
    return "\n".join(found)


def _set(training: MeasuredTraining, rows: Sequence[ParameterRow]) -> str:
    """Says which line sets parameters that no optimizer holds, from the first pass on, as those of a target network."""
    passes = training.facts.backwards
    first = passes[0].index if passes else -1
    writes = [call for row in rows for call in training.written_after(row.tensor, first)]
    last = max(writes, key=lambda call: call.index, default=None)
    span = None if last is None else training.facts.span(last.site)
    return "no" if last is None else "set" if span is None else f"set, line {span.line}"


def _moved(training: MeasuredTraining, module: ModuleStatistics) -> str:
    moved = module.moved
    if moved is None:
        trace = training.facts.trace
        is_whole = is_complete(trace) and not trace.inspection.switches
        is_known = is_whole and all(row.statistics is None for row in module.rows)
        return _set(training, module.rows) if is_known else UNKNOWN
    distance, size = moved
    if not distance:
        return "no"
    if not isfinite(distance):
        return "not finite"
    return percent_text(distance / size) if size else f"{distance:.2g}"
