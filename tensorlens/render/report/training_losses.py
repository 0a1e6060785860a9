"""Writes the losses of a run with `--training`: each line that runs backward, its terms, and what these reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.summed_terms import Loss, LossTerm, losses, names_of
from tensorlens.analysis.training.term_shares import Owner, owners_in, shares
from tensorlens.records.source import shown_path
from tensorlens.render.percent import percent_text
from tensorlens.render.tables import HouseTable

HEADINGS = ("loss line", "passes", "term", "line", "parameters reached")
Owners = Mapping[int, Owner]
Shares = Mapping[Owner, Sequence[float]]
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
        measured, owners = shares(training, loss), owners_in(training, loss)
        if not loss.terms:
            rows.append([*head, "", "", reached_text(training, loss.reached)])
        for place, term in enumerate(loss.terms):
            cells = [
                names_of(training.facts, term),
                _line(training, term.site),
                _term_reaches(training, term, owners, measured.get(place, {})),
            ]
            rows.append([*(("", "") if place else head), *cells])
    shown = [place for place in range(len(HEADINGS)) if place not in (2, 3) or any(row[place] for row in rows)]
    return [HEADINGS[place] for place in shown], [[row[place] for place in shown] for row in rows]


def _term_reaches(training: MeasuredTraining, term: LossTerm, owners: Owners, measured: Shares) -> str:
    if not term.requires_grad:
        return "none: constant"
    return reached_text(training, term.reached, owners, measured)


def reached_text(
    training: MeasuredTraining, numbers: Iterable[int], owners: Owners | None = None, measured: Shares | None = None
) -> str:
    """Counts leaves by what holds them: "all 6 of net", "2 of 6 of net", "head.bias".

    Adds the share that a term has of the gradient, if another term has one: "all 6 of net: 82 -> 35 %".
    """
    reached = set(numbers)
    rows = training.rows
    owners = owners or {row.tensor: row.owner[:1] for row in rows}
    totals = Counter(owners[row.tensor] for row in rows)
    found = Counter(owners[row.tensor] for row in rows if row.tensor in reached)
    if len(found) > _MOST_OWNERS:
        return f"{sum(found.values())} of {len(rows)} parameters"
    variables = {owners[row.tensor] for row in rows if row.name == "".join(row.owner)}
    parts = [
        ("".join(o) if o in variables else _part("".join(o), n, totals[o])) + _share((measured or {}).get(o, ()))
        for o, n in found.items()
    ]
    others = reached - {row.tensor for row in rows}
    names = dict.fromkeys(training.facts.name(number) for number in sorted(others))
    parts += names if len(names) <= _MOST_OWNERS else [f"{len(others)} other leaves"]
    return ", ".join(parts) or "none"


def _share(values: Sequence[float]) -> str:
    """Returns the first and the last share: ": 82 -> 35 %"; "" if no other term has one."""
    if not values or set(values) == {1.0}:
        return ""
    first, last = (percent_text(each) for each in (values[0], values[-1]))
    return f": {last}" if first == last else f": {first.removesuffix(' %')} -> {last}"


def shares_text(training: MeasuredTraining) -> str | None:
    """Says what the shares in the table are, or why there are none; None if no loss has several terms."""
    inspection = training.facts.trace.inspection
    if inspection.terms_unknown:
        return f"the share that each term has of the gradient is not known: {inspection.terms_unknown[0].reason}"
    table = losses_cells(training)[1]
    if not any(" %" in row[-1] for row in table):
        return None
    return (
        "percent: the norm of the gradient of a term alone, as a share of the sum of these norms; at the first and the "
        "last measured pass of a second run"
    )


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
    measured = shares(training, loss)
    terms = [
        {
            "name": names_of(training.facts, term),
            "line": _place(training, term.site),
            "constant": not term.requires_grad,
            "reached": sorted(term.reached),
            "share": [
                {"module": "".join(owner), "shares": list(values)} for owner, values in measured.get(place, {}).items()
            ],
        }
        for place, term in enumerate(loss.terms)
    ]
    return {"line": _place(training, loss.site), "passes": loss.passes, "reached": sorted(loss.reached), "terms": terms}


def _place(training: MeasuredTraining, site: int | None) -> dict[str, Any] | None:
    span = training.facts.span(site)
    folder = training.facts.trace.script.folder
    return None if span is None else {"file": shown_path(span.file, folder), "line": span.line}
