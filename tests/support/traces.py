"""Makes traces by hand from a few lines of source, for tests that need no torch."""

from __future__ import annotations

from tensorlens.records.model import (
    Access,
    Binding,
    Call,
    End,
    Failure,
    Gap,
    Script,
    Site,
    Span,
    State,
    Storage,
    Tensor,
    Trace,
    Versions,
    Write,
)
from tensorlens.records.report import Diagnostic, Label, Report

FILE = "/home/ada/demo.py"


def span(source: str, line: int, text: str) -> Span:
    """Returns the span of `text` on a line."""
    column = source.splitlines()[line - 1].index(text)
    return Span(FILE, line, column, line, column + len(text))


def written_alias(source: str, names: tuple[str, str, str] = ("a", "out", "c"), message: str = "oops") -> Report:
    """Returns the report of a small program: a leaf, its sigmoid, a detached alias, a write to that, and a failure."""
    lines = source.splitlines()[:5]
    parts = [line.partition(" = ")[2] or line for line in lines]
    spans = [span(source, number + 1, part) for number, part in enumerate(parts)]
    targets = [(names[0],), (names[1],), (names[2],), (), ()]
    sites = tuple(
        Site(n, place, "<module>", None, target) for n, (place, target) in enumerate(zip(spans, targets, strict=True))
    )
    tensors = tuple(
        Tensor(n, storage, counter, (3,), "float32", "cpu", "Tensor", None, n)
        for n, (storage, counter) in enumerate([(0, 0), (1, 1), (1, 1)])
    )
    leaf = State(0, 0, True, True, None, None, storage=0)
    out = State(1, 0, True, False, "SigmoidBackward0", 0, storage=1)
    alias = State(2, 0, False, True, None, None, storage=1)
    written = State(2, 1, False, True, None, None, storage=1)
    events = (
        Call(0, "torch.tensor", 0, (), (Access(0, 0),), (), (leaf,), (0, 0), "grad"),
        Call(1, "Tensor.sigmoid", 1, (Access(0, 0),), (Access(1, 0),), (), (out,), (0, 1), "grad"),
        Call(2, "Tensor.detach", 2, (Access(1, 0),), (Access(2, 0),), (), (alias,), (1, 1), "grad"),
        Call(3, "Tensor.zero_", 3, (Access(2, 0),), (Access(2, 1),), (Write(2, 0, 1),), (written,), (1, 1), "grad"),
    )
    failure = Failure(4, "", "RuntimeError", message, 4, "Tensor.backward", (), (), (4,), False)
    end = End(
        (leaf, State(1, 1, True, False, "SigmoidBackward0", 0, storage=1), written),
        tuple(Binding(name, n, "<module>") for n, name in enumerate(names)),
    )
    trace = Trace(
        Versions("0.1.0", "2.13.0", "3.11.7"),
        Script("demo.py", (), "/home/ada", "error", 1, 0),
        {FILE: source},
        sites,
        (Storage(0, 12), Storage(1, 12)),
        tensors,
        events,
        (failure,),
        end,
    )
    labels = (Label("modified_here", spans[3], "changed here"), Label("saved_here", spans[1], "saved here"))
    diagnostic = Diagnostic(
        "saved-tensor-modified-inplace", "error", f"`{names[1]}` was changed", "it is needed", labels
    )
    return Report(trace, (diagnostic,))


def gap_reasons(trace: Trace) -> str:
    """Returns the reasons of all gaps."""
    return "\n".join(event.reason for event in trace.events if isinstance(event, Gap))
