"""The errors that a user of the command line sees. Each is one clear line and an exit code."""

from __future__ import annotations


class TensorLensError(Exception):
    """An error that the user can correct. It is printed as one line, never as a traceback."""

    exit_code = 2


class UsageError(TensorLensError):
    """A wrong name, path or option."""


class TraceFileError(TensorLensError):
    """A file that is not a saved trace, or a damaged one."""
