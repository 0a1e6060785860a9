"""The probing child: one JSON request on standard input, JSON lines on what was standard output.

Lines out: `{"begin": what}` before anything that may crash or hang, so that the parent knows where it happened;
`{"inputs": ...}` and `{"operands": ...}` once; `{"cell": [operand, input, probe], "answer": ...}` a measurement;
`{"error": line}` for a mistake of the user; `{"spoiled": names}` where a global setting can't be restored, so that
another child has to go on; `{"done": true}` last.
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

Tell = Callable[[dict[str, Any]], None]


def main() -> None:
    """Keep the pipe to ourselves, then measure: what operands print goes to standard error."""
    request = json.loads(sys.stdin.read())
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.set_num_threads(1)  # times are compared: they shall not depend on what else the cores are doing
    tell = partial(_tell, pipe)
    try:
        answer(request, tell)
    except UsageError as error:
        tell({"error": str(error)})
    except SpoiledError as error:
        tell({"spoiled": str(error)})
    pipe.flush()
    os._exit(0)  # an operand may have left threads or half-dead objects that would crash or hang the ending


def answer(request: dict[str, Any], tell: Tell) -> None:
    """Measure what `request` asks for and was not measured before a crash."""
    request["settings"] = settings.snapshot()
    if "operands" in request:
        specs = [input_from(each) for each in request["inputs"]]
        resolved = [_again(each, index in request.get("skip", ())) for index, each in enumerate(request["operands"])]
    else:
        begin = partial(_begin, tell, request.get("avoid", ()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            resolved, specs = choose(request["texts"], request["options"], request.get("skip", ()), begin)
        tell({"torch": torch.__version__, "inputs": [asdict(each) for each in specs]})
        tell({"operands": [asdict(each.operand) for each in resolved]})
    done = {tuple(cell) for cell in request.get("done", ())}
    for index, each in enumerate(resolved):
        if index in request.get("skip", ()):
            continue
        for place, spec in enumerate(specs):
            with settings.restored():
                _measure(each, spec, (index, place), done, request, tell)
    tell({"done": True})


def _again(operand: dict[str, str], given_up: bool) -> Resolved:
    """An operand that an earlier child resolved; one that was given up may have no code at all."""
    if given_up:
        return operands.skipped(operand["operand"])
    return operands.read(operand["operand"], operand["call"], operand["kind"])


def _measure(
    resolved: Resolved,
    spec: Input,
    at: tuple[int, int],
    done: set[tuple[Any, ...]],
    request: dict[str, Any],
    tell: Tell,
) -> None:
    """Ask every probe about one operand on one input, unless the operand does not even run there."""
    if (*at, "runs", False) in done:
        return
    bench = Bench(resolved.code, spec, request["options"]["size"])
    as_found = request["settings"]
    for probe in PROBES:
        cell = (*at, probe.name)
        if cell in done or (at[1] and not probe.everywhere):
            continue
        tell({"begin": list(cell)})
        if left := settings.changed(as_found):
            raise SpoiledError(", ".join(left))
        try:
            with settings.kept(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = probe.ask(bench)
        except Exception as error:
            found = measured_text.raised(error)
        tell({"cell": list(cell), "answer": found and asdict(found)})
        if probe.name == "runs" and found and not found.value:
            return


class SpoiledError(Exception):
    """A global setting that was changed could not be restored: later answers would not be true of the operand."""


def _begin(tell: Tell, avoid: Collection[str], index: int, call: str) -> bool:
    """Announce a call that is about to be tried, unless it brought an earlier child down."""
    if call in avoid:
        return False
    tell({"begin": ["resolve", index, call]})
    return True


def _tell(pipe: TextIO, message: dict[str, Any]) -> None:
    pipe.write(json.dumps(message) + "\n")
    pipe.flush()


if __name__ == "__main__":
    main()
