"""Writes the losses of a run with `--training`: each line that runs backward, its terms, and what these reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tensorlens.analysis.training.losses import Loss, LossTerm, losses, term_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.records.source import shown_path
from tensorlens.render.tables import HouseTable

HEADINGS = ("loss line", "passes", "term", "line", "parameters reached")
_MOST_OWNERS = 4  # that are named in one cell


def losses_table(training: MeasuredTraining) -> HouseTable:
    headings, rows = losses_cells(training)
    table = HouseTable(["\n".join(each.split(" ", 1)) for each in headings], ["name"], right=(1,))
    for row in rows:
        table.add(*row)
    return table


def losses_cells(training: MeasuredTraining) -> tuple[list[str], list[list[str]]]:
    """Returns the headings and the rows: one for each term, or for a loss that has a single term.

    Without any loss of several terms there are no columns about terms.
    """
    rows: list[list[str]] = []
    for loss in losses(training.facts):
        head = [_line(training, loss.site), f"{loss.passes:,}"]
        if not loss.terms:
            rows.append([*head, "", "", reached_text(training, loss.reached)])
        for place, term in enumerate(loss.terms):
            cells = [
                term_name(training.facts, term.terms[-1]),
                _line(training, term.site),
                _term_reaches(training, term),
            ]
            rows.append([*(("", "") if place else head), *cells])
    shown = [place for place in range(len(HEADINGS)) if place not in (2, 3) or any(row[place] for row in rows)]
    return [HEADINGS[place] for place in shown], [[row[place] for place in shown] for row in rows]


def _term_reaches(training: MeasuredTraining, term: LossTerm) -> str:
    if not term.requires_grad:
        return "none: constant"
    return reached_text(training, term.reached)


def reached_text(training: MeasuredTraining, numbers: Iterable[int]) -> str:
    """Counts leaves by what holds them: "all 6 of net", "2 of 6 of net", "head.bias"."""
    reached = set(numbers)
    rows = training.rows
    totals = Counter(row.owner[:1] for row in rows)
    found = Counter(row.owner[:1] for row in rows if row.tensor in reached)
    if len(found) > _MOST_OWNERS:
        return f"{sum(found.values())} of {len(rows)} parameters"
    variables = {row.owner[:1] for row in rows if row.name == "".join(row.owner)}
    parts = ["".join(o) if o in variables else _part("".join(o), n, totals[o]) for o, n in found.items()]
    others = reached - {row.tensor for row in rows}
    names = dict.fromkeys(training.facts.name(number) for number in sorted(others))
    parts += names if len(names) <= _MOST_OWNERS else [f"{len(others)} other leaves"]
    return ", ".join(parts) or "none"


def _part(owner: str, count: int, total: int) -> str:
    if total == 1:
        return owner
    return f"all {total} of {owner}" if count == total else f"{count} of {total} of {owner}"


def _line(training: MeasuredTraining, site: int | None) -> str:
    span = training.facts.span(site)
    return "" if span is None else str(span.line)


# --- JSON ------------------------------------------------------------------------------------------------------------


def losses_list(training: MeasuredTraining) -> list[dict[str, Any]]:
    """Returns one object for each line that runs backward; parameters by their ids."""
    return [_loss(training, loss) for loss in losses(training.facts)]


def _loss(training: MeasuredTraining, loss: Loss) -> dict[str, Any]:
    terms = [
        {
            "name": term_name(training.facts, term.terms[-1]),
            "line": _place(training, term.site),
            "constant": not term.requires_grad,
            "reached": sorted(term.reached),
        }
        for term in loss.terms
    ]
    return {"line": _place(training, loss.site), "passes": loss.passes, "reached": sorted(loss.reached), "terms": terms}


def _place(training: MeasuredTraining, site: int | None) -> dict[str, Any] | None:
    span = training.facts.span(site)
    folder = training.facts.trace.script.folder
    return None if span is None else {"file": shown_path(span.file, folder), "line": span.line}
