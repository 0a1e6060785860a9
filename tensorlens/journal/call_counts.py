"""Counts the compact calls of a run by their templates."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence

from tensorlens.journal import compact_calls
from tensorlens.journal.call_runs import CallRun
from tensorlens.journal.call_templates import CallTemplates
from tensorlens.journal.compact_calls import INT, TAIL
from tensorlens.journal.rows import CallTemplateRow
from tensorlens.records.model import Site, Total
from tensorlens.records.record_code import maker

_total: Callable[..., Total] = maker(Total)


class CallCounts:
    """The number of calls of each template. `templates` gets the templates that are added."""

    def __init__(self, templates: CallTemplates) -> None:
        self.total = 0
        self._templates = templates
        self._lengths = array("q")  # template -> how many ints a call of it is; 0: there is no such template
        self._counts = array("q")  # template -> how many calls of it there were
        self._is_step_counted = False

    def add_template(self, row: CallTemplateRow) -> None:
        """Adds a template.

        Raises:
            ValueError: its number makes no sense.
        """
        self._templates.add(row)
        missing = array("q", bytes(INT * max(row.template + 1 - len(self._lengths), 0)))
        self._lengths += missing
        self._counts += missing
        self._lengths[row.template] = 1 + 2 * max(row.inputs, 0) + TAIL

    def ends(self, calls: bytes) -> bytes:
        """Returns where each call ends: see `compact_calls.ends`."""
        return compact_calls.ends(calls, self._lengths)

    def begin_step(self) -> None:
        """Notes that an optimizer step begins or ends."""
        self._is_step_counted = False

    def add(self, run: CallRun) -> None:
        """Counts the calls of a run.

        An optimizer step is one compact call for each parameter: only the first of them counts.
        """
        if not run.within:
            compact_calls.count(run.calls, run.ends, run.start, run.stop, self._counts)
            self.total += run.stop - run.start
            return
        for template in run.templates():
            if self._templates.rows[template].op == run.within:
                if self._is_step_counted:
                    continue
                self._is_step_counted = True
            self._counts[template] += 1
            self.total += 1

    def totals(self, others: Counter[tuple[int, str]], sites: Sequence[Site]) -> tuple[Total, ...]:
        """Returns the number of calls at each of the `sites`, by op, together with that of `others`."""
        found = others.copy()
        for number, calls in enumerate(self._counts):
            if calls:
                site = self._templates.sites[number]
                site = sites[site].id if 0 <= site < len(sites) else site  # no int of its own
                found[site, self._templates.rows[number].op] += calls
        one = dict[int, int]().setdefault  # a wide program has 100,000 totals, and few different ones
        return tuple(_total(site, op, one(calls, calls)) for (site, op), calls in found.items())
