"""Writes docs/how-it-works.md: one failing program from its source line to the screen, with the data of a real run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any
from unittest import mock

from support.folders import DOCS, ROOT

from tensorlens.analysis.saved_tensors import saved_tensor_change
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics import diagnose
from tensorlens.journal.reader import Reader
from tensorlens.journal.row_buffer import typed
from tensorlens.journal.rows import CallTemplateRow, FailureRow, SiteRow
from tensorlens.records.model import Call, Trace
from tensorlens.runner.launch import run_script
from tensorlens.runner.targets import Target

FILE = DOCS / "how-it-works.md"
PROGRAM = "docs/examples/overwritten_output.py"
_MESSAGE = re.compile(r"one of the variables needed for [^'\"]*")
MESSAGE = "one of the variables needed for gradient computation has been modified by an inplace operation"

TEXT = """\
# How it works

This page follows one failing program from a line of its source to the text on the screen. A command writes the page
(`make how`), and a test compares it with a new run: all data below is real.

## 1. The program

{program}

`exp()` computes its gradient from its own result, so autograd saves `y`. Line 5 then overwrites `y`. `backward()`
raises "{message}" and names
neither line.

`tensorlens explain` starts a child process (`runner/launch.py`). The child runs the script as `__main__`
(`tracer/entry/script.py`), inside a `TorchFunctionMode` and with a few functions of torch replaced
(`tracer/patches/table.py`). So torch calls `__torch_function__` (`tracer/recording/fast_path.py`, or the same compiled
from `_fast_path.c`) for every operation of the script.

## 2. A call becomes a row

The recorder appends rows to a list: plain tuples of numbers and text (`journal/rows.py`). No row holds a tensor, a
gradient or a node, so recording keeps nothing alive. When a line runs for the first time, the recorder writes a row for
its site: the file, the function, the line with its columns, and the name that the line assigns to. For line 4:

{site}

The recorder also writes a call template, once: what is the same each time this site calls `exp` on such a tensor, such
as the op, the shape and dtype of the result, and the name of its `grad_fn`. The call itself is a run of numbers: the
template, the id and the version of each input, then the id of the result, the id of its base (-1: none), its version,
and autograd's sequence number.

{template}

If the script ran line 4 again, the recorder would write only the run of numbers. Line 5 changes its first argument in
place: its template has `result=1`, where `result=0` stands for a new tensor. Its numbers say that the input is tensor 1
at version 0, and the result tensor 1 at version 1:

{write}

A thread packs the rows and appends them to a file, the journal, several times a second
(`tracer/recording/journal_writer.py`). If the script is killed, only the last batch is lost.

## 3. The failure

`backward()` raises. The patch of the engine (`tracer/patches/backward.py`) sees the exception and reads the graph once
(`tracer/saved_tensors/graph.py`): which tensors each node saved, at which version, and which version is there now.

{failure}

The exception then goes on to the script, unchanged.

## 4. The trace

Back in the command's own process, which never imports torch, `journal/reader.py` reads each row with the function for
its tag, and `journal/trace_builder.py` builds the frozen records of a `Trace` (`records/model.py`). The run of numbers
of line 5 becomes a `Call`:

{call}

## 5. The finding

`records/error_messages.py` matches PyTorch's message with the patterns of all pages and finds the code
`{code}`. Its finder
(`diagnostics/saved_tensors/saved_tensor_modified_inplace.py`) asks the analysis one question: where was this tensor
saved, changed and needed? `analysis/saved_tensors.py` answers with facts of the trace only: the
node's sequence number leads to the call that saved the tensor, and the write with the first version after the saved
one is the change.

{query}

The finder puts the answer into words. A `Diagnostic` (`records/report.py`) labels sites and holds the advice:

{finding}

## 6. The screen

`render/report/terminal.py` draws the report: the story, the tensor table, then the finding with its source lines.

{screen}
"""


def document() -> str:
    """Writes the page, from a run of the program."""
    rows: list[Any] = []
    trace = _run(rows)
    index = TraceIndex(trace)
    (failure,) = trace.failures
    (diagnostic,) = diagnose(trace)
    by_line = {row.position[0]: row for row in rows if isinstance(row, SiteRow)}
    templates = {row.op: number for number, row in enumerate(rows) if isinstance(row, CallTemplateRow)}
    saving, writing = templates["Tensor.exp"], templates["Tensor.add_"]
    return TEXT.format(
        program=_fence((ROOT / PROGRAM).read_text(encoding="utf-8"), "python"),
        message=MESSAGE,
        site=_fence(_shown(by_line[4])),
        template=_fence(_shown(rows[saving]) + "\n" + _ints(rows, saving)),
        write=_fence(_shown(rows[writing]) + "\n" + _ints(rows, writing)),
        failure=_fence(_shown(next(row for row in rows if isinstance(row, FailureRow)))),
        call=_fence(_shown(next(e for e in trace.events if isinstance(e, Call) and e.op == "Tensor.add_"))),
        code=diagnostic.code,
        query=_fence(_shown(saved_tensor_change(index, failure))),
        finding=_fence(_shown(diagnostic)),
        screen=_fence(_printed(), "console"),
    )


def _run(rows: list[Any]) -> Trace:
    """Runs the program as the command does, and copies the rows of its journal into `rows`."""
    read = Reader.read

    def copying(reader: Reader, batches: Iterable[Any]) -> Any:
        return read(reader, map(copied, batches))

    def copied(batch: list[Any]) -> list[Any]:
        rows.extend(typed(row) if isinstance(row, tuple) else row for row in batch)
        return batch

    with mock.patch.object(Reader, "read", copying):
        return run_script(Target("file", PROGRAM))


def _printed() -> str:
    """Returns the output of the command at 80 columns."""
    environment = {**os.environ, "COLUMNS": "80", "LINES": "50", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "tensorlens", "explain", PROGRAM]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return f"$ tensorlens explain {PROGRAM}\n{ended.stdout}"


def _ints(rows: list[Any], template: int) -> str:
    """Returns the run of numbers after a template, up to the next row."""
    numbers: list[int] = []
    for row in rows[template + 1 :]:
        if not isinstance(row, int):
            break
        numbers.append(row)
    return " ".join(map(str, numbers))


def _shown(value: Any, indent: str = "") -> str:
    """Writes a record as Python text, with a field or an item on each line if it is long."""
    deeper = indent + "    "
    if is_dataclass(value):
        texts = [f"{field.name}={_shown(getattr(value, field.name), deeper)}" for field in fields(value)]
        name = type(value).__name__
    elif hasattr(value, "_asdict"):
        texts = [f"{key}={_shown(item, deeper)}" for key, item in value._asdict().items()]
        name = type(value).__name__
    elif isinstance(value, tuple) and any(map(is_dataclass, value)):
        name, texts = "", [_shown(item, deeper) for item in value]
    else:
        return repr(value)
    short = f"{name}({', '.join(texts)})" if name or len(texts) > 1 else f"({texts[0]},)"
    if len(short) + len(indent) <= 100 and "\n" not in short:
        return short
    return f"{name}(\n" + "".join(f"{deeper}{text},\n" for text in texts) + f"{indent})"


def _fence(text: str, language: str = "") -> str:
    text = _MESSAGE.sub("one of the variables ...", text).replace(str(ROOT) + os.sep, "").replace("+cpu", "")
    return f"```{language}\n{text.rstrip()}\n```"


if __name__ == "__main__":
    os.chdir(ROOT)
    FILE.write_text(document(), encoding="utf-8")
