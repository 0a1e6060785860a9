"""Prints what is asked of the pretended device, as JSON: by each program in a plain run, and in a recorded one.

Also prints what a recording asks of a device on which everything fails, as CUDA does after an error in a kernel.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import torch

import tensorlens
from support import pretended_device
from support.device_programs import PROGRAMS, network
from tensorlens.records.model import Gap

BROKEN = "CUDA error: device-side assert triggered"


def asked(run: Callable[[], object]) -> tuple[Counter[str], str]:
    """Returns the kernels that ran on the device, and the error that ended the program."""
    pretended_device.asked.clear()
    error = ""
    try:
        run()
    except Exception as raised:
        error = repr(raised)
    return +pretended_device.asked, error


def recorded(run: Callable[[], object]) -> None:
    """Records a program and makes its report."""
    session = tensorlens.trace()
    try:
        with session:
            run()
    finally:
        gaps = [event.reason for event in session.trace().events if isinstance(event, Gap)]
        if any("could not" in reason for reason in gaps):
            print(gaps, file=sys.stderr)
        str(session.report())


def breaks() -> None:
    """Trains until the device fails, and goes on for one step as a program does that catches the error."""
    model = network(pretended_device.NAME)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.zeros(2, 3, device=pretended_device.NAME)).sum().backward()
    pretended_device.broken = BROKEN
    with suppress(RuntimeError):
        optimizer.step()
    model(torch.zeros(2, 3, device=pretended_device.NAME)).sum().backward()


def both(run: Callable[[], object]) -> list[object]:
    """Returns what `asked` does, of a plain run and of a recorded one."""
    results: list[object] = []
    for one in (run, lambda: recorded(run)):
        results.append(asked(one))
        pretended_device.broken = ""
    return results


if __name__ == "__main__":
    pretended_device.register()
    warnings.simplefilter("ignore")
    found: dict[str, list[object]] = {}
    for program in PROGRAMS:
        once = functools.partial(program, pretended_device.NAME)
        with suppress(Exception):  # what PyTorch does at the first call only
            once()
        found[program.__name__] = both(once)
    found["breaks"] = both(breaks)
    print(json.dumps(found))
