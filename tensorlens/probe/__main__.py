"""The probing child: one JSON request on standard input, JSON lines on what was standard output.

Lines out: `{"begin": what}` before anything that may crash or hang, so that the parent knows where it happened;
`{"inputs": ...}` and `{"operands": ...}` once; `{"cell": [operand, input, probe], "answer": ...}` for each measurement;
`{"error": line}` for a mistake of the user; `{"done": true}` last.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TextIO

import torch

from tensorlens.compare.records import Input, input_from
from tensorlens.errors import UsageError
from tensorlens.probe import inputs, operands, words
from tensorlens.probe.bench import Bench
from tensorlens.probe.operands import Resolved, Unresolved
from tensorlens.probe.probes import PROBES

Tell = Callable[[dict[str, Any]], None]


def main() -> None:
    """Keep the pipe to ourselves, then measure: what operands print goes to standard error."""
    request = json.loads(sys.stdin.read())
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # times are compared: they shall not depend on what else the cores are doing
    tell = partial(_tell, pipe)
    try:
        answer(request, tell)
    except UsageError as error:
        tell({"error": str(error)})
    pipe.flush()
    os._exit(0)  # an operand may have left threads or half-dead objects that would crash or hang the ending


def answer(request: dict[str, Any], tell: Tell) -> None:
    """Measure what `request` asks for and was not measured before a crash."""
    if "operands" in request:
        specs = [input_from(each) for each in request["inputs"]]
        resolved = [operands.read(each["operand"], each["call"], each["kind"]) for each in request["operands"]]
    else:
        resolved, specs = _resolve_all(request, tell)
        tell({"torch": torch.__version__, "inputs": [asdict(each) for each in specs]})
        tell({"operands": [asdict(each.operand) for each in resolved]})
    done = {tuple(cell) for cell in request.get("done", ())}
    for index, each in enumerate(resolved):
        for place, spec in enumerate(specs):
            _measure(each, spec, (index, place), done, request, tell)
    tell({"done": True})


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
    for probe in PROBES:
        cell = (*at, probe.name)
        if cell in done or (at[1] and not probe.everywhere):
            continue
        tell({"begin": list(cell)})
        try:
            found = probe.ask(bench)
        except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
            found = words.raised(error)
        tell({"cell": list(cell), "answer": found and asdict(found)})
        if probe.name == "runs" and found and not found.value:
            return


def _resolve_all(request: dict[str, Any], tell: Tell) -> tuple[list[Resolved], list[Input]]:
    """The operands and the inputs for them: the first shape that all of them run on, else the one for the most."""
    options = request["options"]
    texts, crashed = request["texts"], set(request.get("crashed", ()))
    best: tuple[list[Resolved | Unresolved], list[Input]] | None = None
    for shape in [tuple(options["shape"])] if options["shape"] is not None else inputs.SHAPES:
        specs = inputs.inputs_for(shape, options)
        found = [
            next(operands.readings(text)) if index in crashed else _resolve(index, text, specs, tell)
            for index, text in enumerate(texts)
        ]
        if best is None or _resolved_count(found) > _resolved_count(best[0]):
            best = found, specs
        if _resolved_count(found) == len(texts):
            break
    assert best is not None
    resolved = [each if isinstance(each, Resolved) else _failing(each) for each in best[0]]
    return resolved, _main_first([each for index, each in enumerate(resolved) if index not in crashed], best[1])


def _resolve(index: int, text: str, specs: Sequence[Input], tell: Tell) -> Resolved | Unresolved:
    tell({"begin": ["resolve", index]})
    plain = inputs.inputs_for(specs[0].shape, {})[0]
    found = operands.resolve(text, [partial(inputs.make, spec) for spec in (*specs, plain)])
    if isinstance(found, Unresolved) and found.first.operand.kind == "code":
        _failing(found)
    return found


def _resolved_count(found: Sequence[Resolved | Unresolved]) -> int:
    return sum(isinstance(each, Resolved) for each in found)


def _failing(found: Unresolved) -> Resolved:
    """An operand that raises everywhere is measured as such, unless what raises is how it is written."""
    operand, error = found.first.operand, found.error
    if found.advice and operand.call.endswith(("()", "(x)")) and isinstance(error, TypeError):
        raise UsageError(f"no arguments found for {operand.operand}: {found.advice}")
    if isinstance(error, operands.MISTAKES):
        raise UsageError(f'can\'t run "{operand.call}": {words.raised(error).error}{operands.nearest(error)}')
    return found.first


def _main_first(resolved: Sequence[Resolved], specs: list[Input]) -> list[Input]:
    """Put the first input that every operand runs on in front: what is asked once is asked there."""
    for spec in specs:
        if all(_runs(each, spec) for each in resolved):
            return [spec, *(other for other in specs if other is not spec)]
    return specs


def _runs(resolved: Resolved, spec: Input) -> bool:
    try:
        resolved.code(inputs.make(spec))
    except Exception:  # noqa: BLE001 - whatever it raises is the finding
        return False
    return True


def _tell(pipe: TextIO, message: dict[str, Any]) -> None:
    pipe.write(json.dumps(message) + "\n")
    pipe.flush()


if __name__ == "__main__":
    main()
