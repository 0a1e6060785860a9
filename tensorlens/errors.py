"""The only errors that a user of the command line sees from us. Each is one clear line and an exit code."""

from __future__ import annotations


class TensorLensError(Exception):
    """Something is wrong that the user can put right; printed as one line, never as a traceback."""

    exit_code = 2


class UsageError(TensorLensError):
    """A wrong name, path or option."""


class TraceFileError(TensorLensError):
    """A saved trace that can't be read."""
