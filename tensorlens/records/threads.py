"""Records facts about the threads of a program."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import SiteId


@dataclass(frozen=True, slots=True)
class SharedSite:
    """A site at which several threads made calls, or ran backward passes, at the same time."""

    index: int
    site: SiteId


@dataclass(frozen=True, slots=True)
class OtherThread:
    """A second thread has made nodes. Each thread counts its nodes from 0, so two may have one number."""

    index: int


@dataclass(frozen=True, slots=True)
class ThreadSwitch:
    """A site at which a thread beside the first one switches its grad mode."""

    index: int
    site: SiteId
