"""Finds the interventions of a run that belong to the call that a frame makes."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType, FrameType

from tensorlens.journal.child_config import Intervention
from tensorlens.records.source import lines_of
from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.frames.positions import Position, position_of

Numbers = tuple[int, ...]
"""Positions in the run's interventions."""
_NONE: Numbers = ()


class CallPlaces:
    """Compares the user's innermost expression with the places of the interventions."""

    def __init__(self, sites: Sites, interventions: Sequence[Intervention]) -> None:
        self._sites = sites
        self._interventions = interventions
        self._files = {each.file for each in interventions}
        self._wanted: dict[str, dict[Position, Numbers]] = {}  # by file; filled when code of the file runs
        self._known: dict[tuple[int, int], Numbers] = {}  # (id of a code object, offset) -> its interventions
        self._codes: list[CodeType] = []  # so that no other code object gets one of these ids

    def at(self, frame: FrameType | None) -> Numbers:
        """Returns the interventions at the user's innermost expression from `frame` outwards."""
        frame = self._sites.user_frame(frame)
        return _NONE if frame is None else self._of(frame.f_code, frame.f_lasti)

    def at_switch(self, frame: FrameType | None) -> Numbers:
        """Returns the interventions at the line that enters a context: the decorator's, if a decorator enters it.

        A `with` statement may make and enter its context in two calls.
        """
        inner = frame
        while inner is not None and not self._sites.is_user(inner.f_code.co_filename):
            if inner.f_code.co_filename.endswith("_contextlib.py"):
                code = getattr(inner.f_locals.get("func"), "__code__", None)
                if code is not None and self._sites.is_user(code.co_filename):
                    return self._wanted_in(code.co_filename).get(self._sites.first_line(code), _NONE)
            inner = inner.f_back
        return _NONE if inner is None else self.on_line(inner.f_code, inner.f_lineno)

    def inside(self, code: CodeType) -> Numbers:
        """Returns the interventions at the expressions of a function."""
        wanted = self._wanted_in(code.co_filename)
        lines = {position[0] for position in code.co_positions()} if wanted else set()
        return tuple(number for place, numbers in wanted.items() if place[0] in lines for number in numbers)

    def on_line(self, code: CodeType, line: int) -> Numbers:
        """Returns the interventions on one line of a function's file."""
        wanted = self._wanted_in(code.co_filename)
        return tuple(number for place, numbers in wanted.items() if place[0] == line for number in numbers)

    def of_kind(self, numbers: Numbers, kind: str) -> Numbers:
        """Returns those of one kind."""
        return tuple(number for number in numbers if self._interventions[number].kind == kind)

    def has_kind(self, kind: str) -> bool:
        """Returns whether the run has an intervention of a kind at all."""
        return any(each.kind == kind for each in self._interventions)

    def _of(self, code: CodeType, offset: int) -> Numbers:
        key = id(code), offset
        found = self._known.get(key)
        if found is None:
            self._codes.append(code)
            found = self._known[key] = self._wanted_in(code.co_filename).get(position_of(code, offset), _NONE)
        return found

    def _wanted_in(self, file: str) -> dict[Position, Numbers]:
        """Returns the interventions in a file, by position."""
        if file in self._files and file not in self._wanted:
            lines = lines_of(self._sites.source(file))
            wanted = self._wanted[file] = {}
            for number, each in enumerate(self._interventions):
                if each.file == file:
                    place = _in_bytes(each, lines)
                    wanted[place] = (*wanted.get(place, _NONE), number)
        return self._wanted.get(file, {})


def _in_bytes(place: Intervention, lines: Sequence[str]) -> Position:
    """Returns a place with columns in UTF-8 bytes, as bytecode has them."""
    first, last = (
        len((lines[line - 1] if line <= len(lines) else "")[:column].encode("utf-8", "surrogatepass"))
        for line, column in ((place.line, place.column), (place.end_line, place.end_column))
    )
    return place.line, place.end_line, first, last
