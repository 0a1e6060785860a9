"""The conversation with the probing child: started again after a crash or a hang, until every cell has an answer."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

from tensorlens.compare.comparison_records import Answer, Input, Operand, input_from
from tensorlens.errors import UsageError
from tensorlens.runner import python_process

STARTS = 12  # children started at most
CRASHES = 3  # of one operand; then it is left as far as it came
SPOILED = "a global setting could not be restored"  # the child has ended itself; another goes on where it was
IMPORTING = 120.0  # seconds that the child may take to come up

Cell = tuple[int, int, str]  # operand, input, probe

_BEGIN = "import runpy; runpy.run_module('tensorlens.compare.probe', run_name='__main__')"


@dataclass(slots=True)
class Measured:
    """What the children told so far."""

    torch: str = ""
    operands: tuple[Operand, ...] = ()
    inputs: tuple[Input, ...] = ()
    cells: dict[Cell, Answer | None] = field(default_factory=dict)
    avoid: list[str] = field(default_factory=list)  # calls that ended a child when they were tried
    crashed: dict[int, str] = field(default_factory=dict)  # operands that ended a child before any measurement: how
    crashes: Counter[int] = field(default_factory=Counter)  # how often each operand ended a child while measured
    stopped: list[tuple[int, int, str, bool]] = field(default_factory=list)  # (operand, input, "runs", False)

    def given_up(self) -> list[int]:
        """The operands that are not to be run any more."""
        return [*self.crashed, *(operand for operand, count in self.crashes.items() if count >= CRASHES)]

    def take(self, message: Mapping[str, Any]) -> None:
        """Keep what one line of a child says.

        Raises:
            UsageError: the line is a mistake of the user.
        """
        if "error" in message:
            raise UsageError(message["error"])
        if "inputs" in message:
            self.torch = message["torch"]
            self.inputs = tuple(input_from(each) for each in message["inputs"])
        elif "operands" in message:
            self.operands = tuple(Operand(**each) for each in message["operands"])
        elif "cell" in message:
            operand, place, probe = message["cell"]
            answer = Answer(**message["answer"]) if message["answer"] else None
            self.cells[operand, place, probe] = answer
            if probe == "runs" and answer and not answer.value:
                self.stopped.append((operand, place, probe, False))


def measure(texts: Sequence[str], options: Mapping[str, Any], timeout: float) -> Measured:
    """Every answer for the operands, however many children that takes. `timeout` is for one answer, in seconds."""
    measured = Measured()
    for _ in range(STARTS):
        ending = _one_child(_request(texts, options, measured), measured, timeout)
        if ending is None:
            break
        begun, reason = ending
        if reason == SPOILED:
            if not measured.operands:
                raise UsageError("an operand changes a global setting of PyTorch that can't be restored")
            continue
        if begun is None:
            raise UsageError(f"the probing process ended before it could measure: {reason}")
        _note_crash(begun, reason, texts, measured)
    return measured


def _request(texts: Sequence[str], options: Mapping[str, Any], measured: Measured) -> dict[str, Any]:
    request: dict[str, Any] = {"texts": list(texts), "options": dict(options), "skip": measured.given_up()}
    request["avoid"] = measured.avoid
    if measured.operands:
        request["operands"] = [asdict(each) for each in measured.operands]
        request["inputs"] = [asdict(each) for each in measured.inputs]
        request["done"] = [*measured.cells, *measured.stopped]
    return request


def _one_child(request: dict[str, Any], measured: Measured, timeout: float) -> tuple[list[Any] | None, str] | None:
    """None when the child finished, else what it had begun last and how it ended."""
    begun: list[Any] | None = None
    with _Child() as child:
        for message in child.messages(json.dumps(request), timeout):
            if message is None:
                return begun, f"no answer within {timeout:g} seconds"
            if "done" in message:
                return None
            if "spoiled" in message:
                return begun, SPOILED
            begun = message.get("begin", begun)
            measured.take(message)
        return begun, child.ending()


class _Child:
    """One probing process; leaving the context ends it, whatever it is doing."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            python_process.command(_BEGIN),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._said = ""
        self._threads = [
            threading.Thread(target=work, args=(stream,), daemon=True)
            for work, stream in ((self._pump, self._process.stdout), (self._listen, self._process.stderr))
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        for thread, stream in zip(self._threads, (self._process.stdout, self._process.stderr), strict=True):
            thread.join(1)
            if stream and not thread.is_alive():  # else something that the operand started still holds the pipe
                stream.close()

    def messages(self, request: str, timeout: float) -> Iterator[dict[str, Any] | None]:
        """The child's lines as they come; None when it is silent for too long, and then nothing more."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.close()
        except OSError:
            pass  # it is gone already: how it ended is read from its exit code
        patience = IMPORTING
        while True:
            try:
                line = self._lines.get(timeout=patience)
            except queue.Empty:
                yield None
                return
            if line is None:
                return
            patience = timeout
            yield json.loads(line)

    def ending(self) -> str:
        """How a child that stopped talking ended, in words."""
        code = self._process.wait()
        self._threads[1].join(1)
        if code < 0:
            return f"the process crashed ({signal.Signals(-code).name})"
        return f"the process ended with exit code {code}" + (f": {self._said}" if self._said else "")

    def _pump(self, stream: TextIO) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    def _listen(self, stream: TextIO) -> None:
        for line in stream:
            self._said = line.strip() or self._said


def _note_crash(begun: list[Any], reason: str, texts: Sequence[str], measured: Measured) -> None:
    """The crash is the answer of the question that was being asked; where the call itself crashes, ask no more."""
    if begun[0] == "resolve":
        _, operand, call = begun
        alone = call == texts[operand] or len(measured.avoid) >= CRASHES
        measured.avoid.append(call)
        if alone:
            measured.crashed[operand] = reason
        return
    operand, place, probe = begun
    measured.crashes[operand] += 1
    measured.cells[operand, place, probe] = (
        Answer(False, "no", reason) if probe == "runs" else Answer("crash", "crash", reason)
    )
    if probe == "runs":
        measured.stopped.append((operand, place, probe, False))
