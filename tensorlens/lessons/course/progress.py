"""Saves the progress through the lessons in a small file in the user's state directory. Imports no torch."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Way = Literal["step", "quiz"]
_FORMAT = "tensorlens.progress"


@dataclass(frozen=True, slots=True)
class Place:
    """Loads and saves the progress of one lesson, for `--step` or `--quiz`. Drops that of a lesson edited since."""

    way: Way
    lesson: str  # the name of a bundled lesson, else an absolute path
    source: str

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.source.encode("utf-8", "replace")).hexdigest()[:16]

    def load(self) -> list[str]:
        """Returns the saved answers: those of a quiz, or the number of the step that was shown last."""
        saved = _read().get(self.way)
        record = saved.get(self.lesson) if isinstance(saved, dict) else None
        if not isinstance(record, dict) or record.get("source") != self._digest:
            return []
        answers = record.get("answers")
        return [str(answer) for answer in answers] if isinstance(answers, list) else []

    def save(self, answers: Sequence[str]) -> bool:
        """Saves the answers, or drops the saved ones if there are none. Returns whether that was possible."""
        data = _read()
        saved = data.setdefault(self.way, {})
        if answers:
            saved[self.lesson] = {"source": self._digest, "answers": list(answers)}
        elif saved.pop(self.lesson, None) is None:
            return True
        return _write(data)


def state_file() -> Path:
    """Returns `tensorlens/progress.json` in the state directory of the XDG specification."""
    folder = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = folder if folder.is_absolute() else Path("~/.local/state").expanduser()
    return base / "tensorlens" / "progress.json"


def _read() -> dict[str, Any]:
    """Returns the saved progress; an empty one if the file is missing or is not a progress file."""
    try:
        data = json.loads(state_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        return {}
    return {way: data[way] for way in ("step", "quiz") if isinstance(data.get(way), dict)}


def _write(data: dict[str, Any]) -> bool:
    """Replaces the file atomically: if two sessions write at once, the file is that of one of them, and whole."""
    path = state_file()
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps({"format": _FORMAT, "version": 1, **data}, indent=1), encoding="utf-8")
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        return False
    return True
