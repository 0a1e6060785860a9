"""Holds what each thread of the program has of its own. A look at a missing attribute would cost an exception."""

from __future__ import annotations

import threading


class ModeOfThread(threading.local):
    """The mode on the stack of one of the program's threads; None: the recorder's own."""

    mode: object = None


class StepOfThread(threading.local):
    """The optimizer step that is running in a thread, or ""."""

    step = ""
