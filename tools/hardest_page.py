"""`make hardest`: writes docs/hardest.md, which compares PyTorch, its anomaly mode and TensorLens on the same programs.

Every line of the document comes from a run: of the program alone, with anomaly detection, and under TensorLens.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.folders import DOCS, PROGRAMS
from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic
from tensorlens.render.markdown_text import markdown_table
from tensorlens.render.report.findings import Finding
from tensorlens.render.tables import printed

DOCUMENT = DOCS / "hardest.md"
COMPARED = [
    PROGRAMS / "failing" / f"{name}.py"
    for name in (
        "siamese_running_scale",
        "best_model_with_cached_activation",
        "gan_generator_after_critic_step",
        "kernel_symmetrised_through_view",
        "rnn_states_in_one_buffer",
        "tied_table_normalised_once",
        "baseline_average_keeps_history",
        "monitor_eats_the_graph",
        "gradient_of_one_task_for_all",
        "decorator_drops_gradient",
    )
]
_HEAD = """# Ten hard errors, side by side

Written by `make hardest` from runs of programs under `tests/programs/failing`: alone, with
`torch.autograd.set_detect_anomaly(True)`, and under `tensorlens explain`. Tracebacks show only the frames in the
program's own files, and comments that mark lines for the tests are removed. Each table lists the lines of the program
that PyTorch, anomaly mode or TensorLens names; for TensorLens, with the part that the line played."""
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+), in .+\n(?P<source>(?:    .*\n)*)', re.M)
_MARK = re.compile(r"\s+#(?: role: .+| ?[role: ]*…)$", re.M)  # whole, or cut off where a snippet ends
_ANOMALY = """import runpy, sys, torch
torch.autograd.set_detect_anomaly(True)
sys.path[0] = {folder!r}
runpy.run_path({program!r}, run_name="__main__")
"""
_WIDTH = 100

Place = tuple[str, int]


@dataclass(frozen=True)
class Compared:
    """One program with its three outputs."""

    program: Path
    alone: str  # standard error
    anomaly: str
    trace: Trace
    diagnostic: Diagnostic

    def facts(self) -> list[str]:
        """Returns the heading and the table. A test compares them with the document."""
        title = f"## `{self.program.stem}`: {self.diagnostic.code}"
        return [title, "", *markdown_table(("line", "PyTorch", "anomaly mode adds", "TensorLens"), list(self._rows()))]

    def _rows(self) -> Iterator[tuple[str, ...]]:
        alone = set(places(self.alone, self.program))
        added = set(places(self.anomaly, self.program)) - alone
        parts: dict[Place, list[str]] = {}
        for label in self.diagnostic.labels:
            parts.setdefault((Path(label.span.file).name, label.span.line), []).append(label.role)
        for place in sorted(alone | added | set(parts)):
            roles = ", ".join(f"`{role}`" for role in dict.fromkeys(parts.get(place, ())))
            yield (
                source(self.program, place),
                "yes" if place in alone else "",
                "yes" if place in added else "",
                roles,
            )


def compared(program: Path, warm: Warm) -> Compared:
    alone = warm.plain(program).stderr
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "anomaly.py")
        script.write_text(_ANOMALY.format(folder=str(program.parent), program=str(program)))
        anomaly = warm.plain(script).stderr
    _, trace = warm.traced(program)
    diagnostic = next(found for found in diagnose(trace) if found.severity == "error")
    return Compared(program, alone, anomaly, trace, diagnostic)


def places(stderr: str, program: Path) -> list[Place]:
    """Returns the lines of the program's own files that a traceback names."""
    frames = ((Path(match["file"]), int(match["line"])) for match in _FRAME.finditer(stderr))
    return [(file.name, line) for file, line in frames if file.parent == program.parent]


def source(program: Path, place: Place) -> str:
    file, line = place
    text = program.with_name(file).read_text().splitlines()[line - 1]
    where = str(line) if file == program.name else f"{file}:{line}"
    return f"{where} `{_MARK.sub('', text).strip()}`".replace("|", "\\|")


def own(stderr: str, program: Path) -> str:
    """Returns standard error without the frames of libraries, and with the names of files in place of their paths."""

    def frame(match: re.Match[str]) -> str:
        return match[0] if Path(match["file"]).parent == program.parent else ""

    return _MARK.sub("", _FRAME.sub(frame, stderr)).replace(f"{program.parent}/", "").rstrip()


def forward(stderr: str, program: Path) -> str:
    """Returns the warning that anomaly mode writes before the traceback."""
    warning = stderr.partition("Traceback (most recent call last):")[0]
    lines = own(warning, program).splitlines()
    return "\n".join(line.rpartition("UserWarning: ")[2] for line in lines if " internally at " not in line
                     and "run_backward" not in line)  # fmt: skip


def document() -> str:
    with Warm() as warm:
        return "\n".join((_HEAD, "", *(line for program in COMPARED for line in _section(compared(program, warm)))))


def _section(result: Compared) -> Iterator[str]:
    lens = printed([Finding(result.diagnostic, result.trace)], _WIDTH, color=False)
    yield from result.facts()
    yield from ("", "PyTorch says:", "", "```text", own(result.alone, result.program), "```", "")
    added = forward(result.anomaly, result.program)
    if added:
        yield from ("Anomaly mode adds:", "", "```text", added, "```", "")
    else:
        yield from ("Anomaly mode adds nothing.", "")
    yield from ("TensorLens says:", "", "```text", _MARK.sub("", lens).rstrip(), "```", "")


if __name__ == "__main__":
    DOCUMENT.write_text(document())
