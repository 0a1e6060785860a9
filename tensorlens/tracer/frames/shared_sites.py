"""Finds the sites that several threads run at the same time: their calls have no order that a finding could rest on."""

from __future__ import annotations

from _thread import get_ident
from array import array

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.threads import OtherThread, SharedSite, ThreadSwitch

_next_sequence = torch._C._autograd._get_sequence_nr


class SharedSites:
    """Knows which thread made calls at each site. `rows` receives a fact for each site of a second thread."""

    def __init__(self, rows: RowBuffer) -> None:
        self._rows = rows
        self.alone: set[int] = set()  # sites of the first thread, noted before another one made a call
        self.first = get_ident()  # the thread that the recording began in
        self.has_second = False  # a second thread has made a call; it stays so
        self._has_other_nodes = False
        self._threads = array("Q")  # site -> the last thread that was seen there; 0: none was
        self._shared: set[int] = set()
        self._switching: set[int] = set()
        self._ended: set[int] = set()  # threads
        self._others = 0  # threads of the program that run now
        self.has_several_threads = False  # there are such
        self._passes: dict[int, tuple[int, int]] = {}  # token of a backward pass -> its thread and its site

    def is_first_thread(self) -> bool:
        """Returns whether this thread is the one that the recording began in."""
        return get_ident() == self.first

    def note(self, site: int) -> None:
        """Notes that this thread makes a call at a site. A thread that has ended leaves its sites to the next one."""
        thread, threads = get_ident(), self._threads
        if thread != self.first:
            self.note_thread()
        if site < len(threads):
            before = threads[site]
            if before == thread:
                return
        else:
            before = 0
            while len(threads) <= site:
                threads.append(0)
        threads[site] = thread
        if not self.has_second:
            self.alone.add(site)
        if before and before not in self._ended:
            self._share(site)

    def pass_begins(self, token: int, site: int) -> None:
        """Notes a backward pass. Two passes that overlap read each other's gradients."""
        thread = get_ident()
        if self.has_second or site not in self.alone or thread != self.first:
            self.note(site)
        if self._passes:
            for other, running in list(self._passes.values()):
                if other != thread:
                    self._share(site)
                    self._share(running)
        self._passes[token] = thread, site

    def pass_ends(self, token: int) -> None:
        self._passes.pop(token, None)

    def thread_begins(self) -> None:
        self._others += 1
        self.has_several_threads = self._others > 0
        self._ended.discard(get_ident())  # the operating system gives the number of an ended thread to a new one

    def thread_ends(self) -> None:
        self._others -= 1
        self.has_several_threads = self._others > 0
        self._ended.add(get_ident())

    def note_thread(self) -> None:
        """Notes that this thread makes a call."""
        if not self._has_other_nodes and get_ident() != self.first:
            self.has_second = True
            if _next_sequence() > 0:
                self._has_other_nodes = True
                self._rows.write_fact(OtherThread)

    def note_switch(self, site: int) -> None:
        """Notes a site at which this thread switches its grad mode."""
        if not self.is_first_thread() and site not in self._switching:
            self._switching.add(site)
            self._rows.write_fact(ThreadSwitch, site)

    def _share(self, site: int) -> None:
        if site not in self._shared:
            self._shared.add(site)
            self._rows.write_fact(SharedSite, site)
