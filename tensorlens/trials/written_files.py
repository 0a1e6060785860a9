"""Writes a fix to the files of the program: all or none, each as a whole, with its own encoding and line ends."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tensorlens.records.edits import by_file, edited, edited_as_it_is
from tensorlens.records.model import Trace
from tensorlens.records.report import Edit
from tensorlens.records.source import shown_path
from tensorlens.records.source_encoding import decoded, encoding_of
from tensorlens.trials.candidates import STDIN, is_programs


class NotWritten(Exception):  # noqa: N818 - says why, in one line
    """A fix was not written, and no file was changed."""


class ReadFiles:
    """The files of a program as a run has read them. To be made when the run has ended."""

    def __init__(self, trace: Trace) -> None:
        self._sources, self._folder = trace.sources, trace.script.folder
        self._read = {file: data for file in trace.sources if (data := _bytes_of(file)) is not None}

    def write(self, edits: Iterable[Edit]) -> list[str]:
        """Writes edits to their files and returns the files.

        Raises:
            NotWritten: a file changed since the run, is not in the program's folder, or can't be written.
        """
        contents = {file: self._edited(file, changes) for file, changes in by_file(edits).items()}
        replacements: list[_Replacement] = []
        try:
            for file, data in contents.items():
                replacements.append(_Replacement(Path(os.path.realpath(file)), self._read[file], data))
            for file in contents:
                self._check_unchanged(file)
            _replace_all(replacements)
        except OSError as error:
            raise NotWritten(f"{error.strerror or error}: {shown_path(str(error.filename), self._folder)}") from None
        finally:
            for replacement in replacements:
                replacement.remove()
        return list(contents)

    def _edited(self, file: str, edits: list[Edit]) -> bytes:
        """Returns the new content of a file."""
        name = shown_path(file, self._folder)
        if file == STDIN or not is_programs(file, self._folder):
            raise NotWritten(f"{name} is not in the folder of the program")
        if Path(file).stat().st_nlink > 1:  # the file is replaced: its other names would keep the old text
            raise NotWritten(f"{name} has another hard link, which would keep the old text")
        self._check_unchanged(file)
        data = self._read[file]
        encoding = encoding_of(data)
        try:
            text = data.decode(encoding)
            result = edited_as_it_is(text, edits).encode(encoding)
        except (UnicodeError, LookupError, ValueError) as error:
            raise NotWritten(f"{name} can't be edited: {error}") from None
        if text.encode(encoding) != data or decoded(result) != edited(self._sources[file], edits):
            raise NotWritten(f"{name} can't be edited: its line ends or its encoding would change")
        return result

    def _check_unchanged(self, file: str) -> None:
        """Raises `NotWritten` if a file is not what the run has read."""
        data = self._read.get(file)
        if data is None or _bytes_of(file) != data or decoded(data) != self._sources[file]:
            raise NotWritten(f"{shown_path(file, self._folder)} changed since the program started")


class _Replacement:
    """Keeps the new content of a file in a temporary file of the same folder, until `put` moves it to its place."""

    def __init__(self, path: Path, old: bytes, new: bytes) -> None:
        self._path, self._old, self._is_put = path, old, False
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        self._ready = self._written(new)

    def _written(self, data: bytes) -> Path:
        """Writes a temporary file with the mode and the owner of the file."""
        state = self._path.stat()
        folder = self._path.parent
        try:
            descriptor, name = tempfile.mkstemp(dir=folder, prefix=f".{self._path.name[:99]}.")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                with suppress(OSError):  # only root may give a file away
                    os.fchown(file.fileno(), state.st_uid, state.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(state.st_mode))
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            Path(name).unlink()
            raise
        return Path(name)

    def put(self) -> None:
        self._ready.replace(self._path)
        self._is_put = True

    def take_back(self) -> None:
        """Gives the file its old content again."""
        if self._is_put:
            self._written(self._old).replace(self._path)

    def remove(self) -> None:
        """Removes the temporary file if it was not used."""
        if not self._is_put:
            with suppress(OSError):
                self._ready.unlink()

    def settle(self) -> None:
        """Makes sure that the folder knows the new file even after a power cut."""
        with suppress(OSError):
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _replace_all(replacements: list[_Replacement]) -> None:
    """Puts all new files in their places; none, if one of them can't be put there."""
    try:
        for replacement in replacements:
            replacement.put()
    except BaseException:
        for replacement in replacements:
            replacement.take_back()
        raise
    for replacement in replacements:
        replacement.settle()


def _bytes_of(file: str) -> bytes | None:
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError):
        return None
