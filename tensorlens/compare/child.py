"""The conversation with the probing child: started again after a crash or a hang, until every cell has an answer."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tensorlens.compare.records import Answer, Input, Operand, input_from
from tensorlens.errors import UsageError

STARTS = 12  # children started at most; beyond, an operand that keeps crashing is left as far as it came
IMPORTING = 120.0  # seconds that the child may take to come up

Cell = tuple[int, int, str]  # operand, input, probe

# The package's folder comes last on the path and the current folder is not on it, so that a user's `random.py` or
# `queue.py` is not what the child imports.
BOOT = "import sys, runpy; sys.path.append(sys.argv.pop()); runpy.run_module('tensorlens.probe', run_name='__main__')"


@dataclass(slots=True)
class Measured:
    """What the children told so far."""

    torch: str = ""
    operands: tuple[Operand, ...] = ()
    inputs: tuple[Input, ...] = ()
    cells: dict[Cell, Answer | None] = field(default_factory=dict)
    crashed: list[int] = field(default_factory=list)  # operands that brought the child down before any measurement
    stopped: list[tuple[int, int, str, bool]] = field(default_factory=list)  # (operand, input, "runs", False)


def measure(texts: Sequence[str], options: Mapping[str, Any], timeout: float) -> Measured:
    """Every answer for the operands, however many children that takes. `timeout` is for one answer, in seconds."""
    measured = Measured()
    for _ in range(STARTS):
        ending = _one_child(_request(texts, options, measured), measured, timeout)
        if ending is None:
            break
        begun, reason = ending
        if begun is None:
            raise UsageError(f"the probing process ended before it could measure: {reason}")
        _note_crash(begun, reason, measured)
    return measured


def _request(texts: Sequence[str], options: Mapping[str, Any], measured: Measured) -> dict[str, Any]:
    request: dict[str, Any] = {"texts": list(texts), "options": dict(options), "crashed": measured.crashed}
    if measured.operands:
        request["operands"] = [asdict(each) for each in measured.operands]
        request["inputs"] = [asdict(each) for each in measured.inputs]
        request["done"] = [*measured.cells, *measured.stopped]
    return request


def _one_child(request: dict[str, Any], measured: Measured, timeout: float) -> tuple[list[Any] | None, str] | None:
    """None when the child finished, else what it had begun last and how it ended."""
    here = str(Path(__file__).resolve().parents[2])
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", BOOT, here],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert child.stderr is not None
    said: list[str] = []
    listener = threading.Thread(target=_keep_last_line, args=(child.stderr, said), daemon=True)
    listener.start()
    begun: list[Any] | None = None
    try:
        for message in _messages(child, json.dumps(request), timeout):
            if message is None:
                return begun, f"no answer within {timeout:g} seconds"
            if "done" in message:
                return None
            begun = message.get("begin", begun)
            _take(message, measured)
        code = child.wait()
        listener.join(1)
        return begun, _ending(code, said)
    finally:
        child.kill()
        child.wait()


def _messages(child: subprocess.Popen[str], request: str, timeout: float) -> Iterator[dict[str, Any] | None]:
    """The child's lines as they come; None when it is silent for too long, and then nothing more."""
    lines: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    assert child.stdin is not None
    try:
        child.stdin.write(request)
        child.stdin.close()
    except OSError:
        pass  # it is gone already: how it ended is read from its exit code
    patience = IMPORTING
    while True:
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            yield None
            return
        if line is None:
            return
        patience = timeout
        yield json.loads(line)


def _take(message: dict[str, Any], measured: Measured) -> None:
    if "error" in message:
        raise UsageError(message["error"])
    if "inputs" in message:
        measured.torch = message["torch"]
        measured.inputs = tuple(input_from(each) for each in message["inputs"])
    elif "operands" in message:
        measured.operands = tuple(Operand(**each) for each in message["operands"])
    elif "cell" in message:
        operand, place, probe = message["cell"]
        answer = Answer(**message["answer"]) if message["answer"] else None
        measured.cells[operand, place, probe] = answer
        if probe == "runs" and answer and not answer.value:
            measured.stopped.append((operand, place, probe, False))


def _note_crash(begun: list[Any], reason: str, measured: Measured) -> None:
    """Record the crash as the answer of the question that was being asked; ask no more where the call itself crashes."""
    if begun[0] == "resolve":
        measured.crashed.append(begun[1])
        return
    operand, place, probe = begun
    measured.cells[operand, place, probe] = Answer(False if probe == "runs" else "crash", reason)
    if probe == "runs":
        measured.stopped.append((operand, place, probe, False))


def _ending(code: int, said: list[str]) -> str:
    if code < 0:
        return f"the process crashed ({signal.Signals(-code).name})"
    return f"the process ended with exit code {code}" + (f": {said[-1]}" if said else "")


def _keep_last_line(stream: Any, said: list[str]) -> None:
    for line in stream:
        if line.strip():
            said[:] = [line.strip()]
