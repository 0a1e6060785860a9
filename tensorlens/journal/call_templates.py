"""Keeps the templates of a run's compact calls. A wide program has a hundred thousand."""

from __future__ import annotations

from array import array

from tensorlens.journal.compact_calls import INT
from tensorlens.journal.rows import NOTHING, CallTemplateRow

MOST = 1 << 20  # many times what the recorder makes
_ABSENT = CallTemplateRow(0, "", 0, (), "", "", 0, False, None, 0, 0, 0, 0, NOTHING)


class CallTemplates:
    """The templates by number, in two tables: most differ from another one in their number and site only.

    Such templates share one row, whose own number and site are 0. `rows` has a row in the place of a number that no
    template has, too: no call of it is read.
    """

    def __init__(self) -> None:
        self.sites = array("q")
        self.rows: list[CallTemplateRow] = []
        self._shared: dict[CallTemplateRow, CallTemplateRow] = {}

    def add(self, row: CallTemplateRow) -> None:
        """Adds a template, or replaces it.

        Raises:
            ValueError: its number makes no sense.
        """
        number = row.template
        if not 0 <= number < MOST:
            raise ValueError("a template has no such number")
        missing = max(number + 1 - len(self.rows), 0)
        self.sites += array("q", bytes(INT * missing))
        self.rows += [_ABSENT] * missing
        shared = row._replace(template=0, site=0)
        self.sites[number] = row.site
        self.rows[number] = self._shared.setdefault(shared, shared)
