"""Finds the sites that several threads run at the same time: their calls have no order that a finding could rest on."""

from __future__ import annotations

from _thread import get_ident
from array import array

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.observations import SharedSite


class SharedSites:
    """Knows which thread made calls at each site. `rows` receives a fact for each site of a second thread."""

    def __init__(self, rows: RowBuffer) -> None:
        self._rows = rows
        self._threads = array("Q")  # site -> the last thread that was seen there; 0: none was
        self._shared: set[int] = set()
        self._ended: set[int] = set()  # threads
        self._others = 0  # threads of the program that run now
        self._passes: dict[int, tuple[int, int]] = {}  # token of a backward pass -> its thread and its site

    @property
    def has_several_threads(self) -> bool:
        return self._others > 0

    def note(self, site: int) -> None:
        """Notes that this thread makes a call at a site. A thread that has ended leaves its sites to the next one."""
        thread = get_ident()
        while len(self._threads) <= site:
            self._threads.append(0)
        before = self._threads[site]
        if before == thread:
            return
        self._threads[site] = thread
        if before and before not in self._ended:
            self._share(site)

    def pass_begins(self, token: int, site: int) -> None:
        """Notes a backward pass. Two passes that overlap read each other's gradients."""
        self.note(site)
        thread = get_ident()
        for other, running in list(self._passes.values()):
            if other != thread:
                self._share(site)
                self._share(running)
        self._passes[token] = thread, site

    def pass_ends(self, token: int) -> None:
        self._passes.pop(token, None)

    def thread_begins(self) -> None:
        self._others += 1
        self._ended.discard(get_ident())  # the operating system gives the number of an ended thread to a new one

    def thread_ends(self) -> None:
        self._others -= 1
        self._ended.add(get_ident())

    def _share(self, site: int) -> None:
        if site not in self._shared:
            self._shared.add(site)
            self._rows.write_fact(SharedSite, site)
