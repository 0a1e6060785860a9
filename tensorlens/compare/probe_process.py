"""Talks to the probing child, and starts another after a crash or a hang, until every cell has an answer."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

from tensorlens.compare.comparison_records import Answer, Input, Operand, input_from
from tensorlens.errors import UsageError
from tensorlens.runner.python_process import python_child

MAX_STARTS = 12  # of child processes
MAX_CRASHES = 3  # of one operand; then it is not measured any further
SPOILED = "a global setting could not be restored"  # the child has exited; another one continues
IMPORTING = 120.0  # seconds that the child may take to start

Cell = tuple[int, int, str]  # operand, input, probe

_START_PROBE = "import runpy; runpy.run_module('tensorlens.compare.probe', run_name='__main__')"


@dataclass(slots=True)
class Measured:
    """The answers of all children so far."""

    torch: str = ""
    operands: tuple[Operand, ...] = ()
    inputs: tuple[Input, ...] = ()
    cells: dict[Cell, Answer | None] = field(default_factory=dict)
    avoid: list[str] = field(default_factory=list)  # calls that crashed a child when they were tried
    crashed: dict[int, str] = field(default_factory=dict)  # operand that crashed before any measurement -> how
    crashes: Counter[int] = field(default_factory=Counter)  # operand -> crashes while it was measured
    stopped: list[tuple[int, int, str, bool]] = field(default_factory=list)  # (operand, input, "runs", False)
    on_answer: Callable[[Measured], None] = field(default=lambda measured: None)

    def given_up(self) -> list[int]:
        """Returns the operands that must not run again."""
        return [*self.crashed, *(operand for operand, count in self.crashes.items() if count >= MAX_CRASHES)]

    def add(self, message: Mapping[str, Any]) -> None:
        """Stores the message of a child.

        Raises:
            UsageError: the message reports a mistake of the user.
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
            self.on_answer(self)
            if probe == "runs" and answer and not answer.value:
                self.stopped.append((operand, place, probe, False))


def measure(
    texts: Sequence[str],
    options: Mapping[str, Any],
    timeout: float,
    on_answer: Callable[[Measured], None] = lambda measured: None,
) -> Measured:
    """Measures the operands, in one child process after the other if they crash. `timeout` is in seconds per answer.

    `on_answer` is called after each answer.
    """
    measured = Measured(on_answer=on_answer)
    for _ in range(MAX_STARTS):
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
    """Runs one child. Returns None if it finished, else (the last thing that it began, how it ended)."""
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
            measured.add(message)
        return begun, child.ending()


class _Child:
    """One probing process; leaving the context kills it."""

    def __init__(self) -> None:
        self._process = python_child(
            _START_PROBE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._last_error = ""
        self._threads = [
            threading.Thread(target=work, args=(stream,), daemon=True)
            for work, stream in ((self._read_lines, self._process.stdout), (self._read_errors, self._process.stderr))
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
            if stream and not thread.is_alive():  # else a process that the operand started has the pipe open
                stream.close()

    def messages(self, request: str, timeout: float) -> Iterator[dict[str, Any] | None]:
        """Yields the child's messages. If it is silent for too long, yields None and ends."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.close()
        except OSError:
            pass  # it has exited already; its exit code says why
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
        """Returns how a child ended that sends no more messages."""
        code = self._process.wait()
        self._threads[1].join(1)
        if code < 0:
            return f"the process crashed ({signal.Signals(-code).name})"
        return f"the process ended with exit code {code}" + (f": {self._last_error}" if self._last_error else "")

    def _read_lines(self, stream: TextIO) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self, stream: TextIO) -> None:
        for line in stream:
            self._last_error = line.strip() or self._last_error


def _note_crash(begun: list[Any], reason: str, texts: Sequence[str], measured: Measured) -> None:
    """Records a crash as the answer of the probe that ran. If the call itself crashes, no other probe asks about it."""
    if begun[0] == "resolve":
        _, operand, call = begun
        is_only_call = call == texts[operand] or len(measured.avoid) >= MAX_CRASHES
        measured.avoid.append(call)
        if is_only_call:
            measured.crashed[operand] = reason
        return
    operand, place, probe = begun
    measured.crashes[operand] += 1
    measured.cells[operand, place, probe] = (
        Answer(False, "no", reason) if probe == "runs" else Answer("crash", "crash", reason)
    )
    if probe == "runs":
        measured.stopped.append((operand, place, probe, False))
