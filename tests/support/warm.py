"""Runs scripts in forks of a process that has imported torch already (see `support/zygote.py`)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from tensorlens.journal.batches import unpack
from tensorlens.journal.child_config import ComparedRun
from tensorlens.journal.reader import Reader
from tensorlens.journal.retention import TRAINING_WINDOW, WINDOW
from tensorlens.records.model import Rank, Script, Trace
from tensorlens.records.reference import attach

_ZYGOTE = Path(__file__).with_name("zygote.py")
_NAME = "<zygote>"  # no file: what runs a script here is no part of the program that the tracer sees
_START = f"exec(compile(open({str(_ZYGOTE)!r}, encoding='utf-8').read(), {_NAME!r}, 'exec'))"
_FRAME = rf'  File "{_NAME}"'
_VARYING = re.compile(
    r"(?<=0x)[0-9a-f]+"
    r"|W\d+ [\d:.]+ .*Terminating process \d+ via signal SIGTERM\n"  # of torch.multiprocessing: if it runs still
    r"|Previous line repeated \d+ more times"  # fewer under the lens: it needs frames too
    rf'|  File "<string>", line 1, in <module>\n(?={_FRAME})|{_FRAME}.*\n'  # what runs the script here
)


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


def comparable(ran: Ran) -> tuple[int, str, str]:
    """Returns the exit code and output of a run, without the parts that differ from run to run."""
    return ran.returncode, _VARYING.sub("", ran.stdout), _VARYING.sub("", ran.stderr)


class Warm:
    """Starts the process that forks; leaving the context ends it."""

    def __enter__(self) -> Warm:
        command = [sys.executable, "-c", _START]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)  # on a busy machine, it may still be importing torch
        self._process.stdout.close()

    def plain(self, script: Path) -> Ran:
        """Runs a script as plain python does."""
        return self._ask(script, None)

    def traced(self, script: Path) -> tuple[Ran, Trace]:
        """Runs a script under the tracer, and checks its claims."""
        ran, reader = self.read(script, None)
        return ran, reader.trace()

    def ranks(self, script: Path, world: int) -> list[tuple[Ran, Trace]]:
        """Runs a script as the ranks of one distributed run, under the tracer."""
        with ExitStack() as stack:
            journals = [stack.enter_context(tempfile.NamedTemporaryFile(prefix="journal-")) for _ in range(world)]
            names = [journal.name for journal in journals]
            answer = self._ask_for({**_request(script), "ranks": world, "journals": names})
            readers = []
            for number, journal in enumerate(journals):
                rank = Rank(number, world, "here", time.time())
                readers.append(Reader(Script(str(script), (), str(script.parent), "killed", None, None, rank)))
                readers[-1].read(unpack(journal))
        return [(Ran(**ran), reader.trace()) for ran, reader in zip(answer, readers, strict=True)]

    def plain_ranks(self, script: Path, world: int) -> list[Ran]:
        """Runs a script as the ranks of one distributed run, as plain python does."""
        request = {**_request(script), "ranks": world, "lens": False, "journals": [os.devnull] * world}
        return [Ran(**ran) for ran in self._ask_for(request)]

    def compared(self, script: Path) -> tuple[Ran, Trace]:
        """Runs a script under the tracer with `--reference`."""
        (ran, first), (_, second) = self.twice(script)
        attach(first, second)
        return ran, first.trace()

    def twice(self, script: Path) -> tuple[tuple[Ran, Reader], tuple[Ran, Reader]]:
        """Makes the two runs of `--reference`."""
        first, second = (ComparedRun(7, False, copies) for copies in (False, True))
        return self.read(script, first), self.read(script, second)

    def journal(self, script: Path) -> bytes:
        """Returns the journal of a script."""
        with tempfile.NamedTemporaryFile(prefix="journal-") as journal:
            self._ask(script, journal.name)
            return journal.read()

    def read(self, script: Path, reference: ComparedRun | None, training: bool = False) -> tuple[Ran, Reader]:
        """Runs the script under the tracer; with `reference`, as that run of `--reference`."""
        with tempfile.NamedTemporaryFile(prefix="journal-") as journal:
            ran = self._ask(script, journal.name, reference, training)
            window = TRAINING_WINDOW if training else WINDOW
            reader = Reader(Script(str(script), (), str(script.parent), "killed", None, None), window)
            reader.read(unpack(journal))
        return ran, reader

    def _ask(
        self, script: Path, journal: str | None, reference: ComparedRun | None = None, training: bool = False
    ) -> Ran:
        request: dict[str, Any] = {
            "script": str(script),
            "argv": [],
            "cwd": str(script.parent),
            "lens": journal is not None,
            "claims": journal is not None,
            "journal": journal,
            "training": training,
            "compared": None if reference is None else asdict(reference),
        }
        return self._answer(request)

    def command(
        self, words: Sequence[str], cwd: Path | None = None, text: str = "", environment: Mapping[str, str] = os.environ
    ) -> Ran:
        """Runs `python -m tensorlens` with `words`; the child processes are forks, too.

        All modules of the command, and torch, are imported before it starts.
        """
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="input-") as given:
            given.write(text)
            given.flush()
            request = {"words": list(words), "cwd": str(cwd or Path.cwd()), "stdin": given.name}
            return self._answer(request | {"environment": dict(environment)})

    def _answer(self, request: dict[str, Any]) -> Ran:
        return Ran(**self._ask_for(request))

    def _ask_for(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _request(script: Path) -> dict[str, Any]:
    """Returns what every run of a script under the tracer asks for."""
    place = {"script": str(script), "argv": [], "cwd": str(script.parent)}
    return place | {"claims": True, "lens": True, "training": False, "compared": None}


@cache
def shared() -> Warm:
    """Returns the process that all tests share, which `end_shared()` ends."""
    return Warm().__enter__()


def end_shared() -> None:
    if shared.cache_info().currsize:
        shared().__exit__(None, None, None)
        shared.cache_clear()
