"""The probing child: reads one JSON request from standard input, and writes JSON lines to its original standard output.

The lines:

- `{"begin": ...}` comes before anything that may crash or hang: the parent then knows what did.
- `{"torch": ..., "inputs": ...}` and `{"operands": ...}` come once, from the first child that gets so far.
- `{"cell": [operand, input, probe], "answer": ...}` is one measurement.
- `{"error": line}` is a mistake of the user.
- `{"spoiled": names}` says that a global setting can't be restored: another child must continue.
- `{"done": true}` comes last.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Collection
from dataclasses import asdict
from functools import partial
from typing import Any, TextIO

import torch

from tensorlens.compare.comparison_records import Input, input_from
from tensorlens.compare.probe import measured_text, operands, settings
from tensorlens.compare.probe.bench import Bench
from tensorlens.compare.probe.choice import choose
from tensorlens.compare.probe.operands import Resolved
from tensorlens.compare.probe.probes import PROBES
from tensorlens.errors import UsageError

Send = Callable[[dict[str, Any]], None]


def main() -> None:
    """Answers the request. Standard output is only for the messages: what operands print goes to standard error."""
    request = json.loads(sys.stdin.read())
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.set_num_threads(1)  # times must not depend on the load of other cores
    send = partial(_send, pipe)
    try:
        answer(request, send)
    except UsageError as error:
        send({"error": str(error)})
    except SpoiledError as error:
        send({"spoiled": str(error)})
    pipe.flush()
    os._exit(0)  # an operand may have left threads or objects that would crash or hang the exit


def answer(request: dict[str, Any], send: Send) -> None:
    """Measures all cells of the request, except those that an earlier child has measured."""
    request["settings"] = settings.snapshot()
    if "operands" in request:
        specs = [input_from(each) for each in request["inputs"]]
        resolved = [
            _resolved_before(each, index in request.get("skip", ())) for index, each in enumerate(request["operands"])
        ]
    else:
        begin = partial(_begin, send, request.get("avoid", ()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            resolved, specs = choose(request["texts"], request["options"], request.get("skip", ()), begin)
        send({"torch": torch.__version__, "inputs": [asdict(each) for each in specs]})
        send({"operands": [asdict(each.operand) for each in resolved]})
    done = {tuple(cell) for cell in request.get("done", ())}
    for index, each in enumerate(resolved):
        if index in request.get("skip", ()):
            continue
        for place, spec in enumerate(specs):
            with settings.restored():
                _measure(each, spec, (index, place), done, request, send)
    send({"done": True})


def _resolved_before(operand: dict[str, str], is_skipped: bool) -> Resolved:
    """Reads an operand that an earlier child resolved. A skipped operand gets a placeholder: it may have no code."""
    if is_skipped:
        return operands.skipped(operand["operand"])
    return operands.read(operand["operand"], operand["call"], operand["kind"])


def _measure(
    resolved: Resolved,
    spec: Input,
    at: tuple[int, int],
    done: set[tuple[Any, ...]],
    request: dict[str, Any],
    send: Send,
) -> None:
    """Asks every probe about one operand on one input, unless the operand does not run on it."""
    if (*at, "runs", False) in done:
        return
    bench = Bench(resolved.code, spec, request["options"]["size"])
    original_settings = request["settings"]
    for probe in PROBES:
        cell = (*at, probe.name)
        if cell in done or (at[1] and not probe.everywhere):
            continue
        send({"begin": list(cell)})
        if left := settings.changed(original_settings):
            raise SpoiledError(", ".join(left))
        try:
            with settings.kept(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                measured = probe.ask(bench)
        except Exception as error:
            measured = measured_text.raised(error)
        send({"cell": list(cell), "answer": measured and asdict(measured)})
        if probe.name == "runs" and measured and not measured.value:
            return


class SpoiledError(Exception):
    """A global setting that an operand changed could not be restored, so later answers would be wrong."""


def _begin(send: Send, avoid: Collection[str], index: int, call: str) -> bool:
    """Announces a call before it is tried. Returns False for a call that has crashed an earlier child."""
    if call in avoid:
        return False
    send({"begin": ["resolve", index, call]})
    return True


def _send(pipe: TextIO, message: dict[str, Any]) -> None:
    pipe.write(json.dumps(message) + "\n")
    pipe.flush()


if __name__ == "__main__":
    main()
