"""The command `why`: runs a script, or reads a saved trace, and answers a question about one of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.cli.exit_codes import INTERRUPTED, OK
from tensorlens.cli.output import Output
from tensorlens.cli.report_options import WHY_OPTIONS
from tensorlens.cli.trailing_options import TrailingOptions, leading, split
from tensorlens.errors import UsageError
from tensorlens.render import FORMS

if TYPE_CHECKING:
    from tensorlens.records.model import Trace

_LONGEST = 10_000  # characters of a name
_TRACE = ".json"


def why(name: str, module: str | None, words: Sequence[str], given: TrailingOptions) -> int:
    """`why NAME SCRIPT [ARGS…]`, `why NAME TRACE.json`, `why NAME -m MODULE [ARGS…]`, also `-m MODULE NAME`."""
    if not name.strip():
        raise UsageError("why what? Give the name of a tensor, and a script or a saved trace")
    if len(name) > _LONGEST:
        raise UsageError(f"no tensor is called so: the name has {len(name):,} characters")
    before, words = leading(words, WHY_OPTIONS)
    if module is None and list(words[:1]) == ["-m"] and len(words) > 1:
        module, words = words[1], words[2:]
    if module is None and not words:
        raise UsageError("why NAME of what? Give a script, a saved trace (.json), or -m and a module")
    after = split(words if module is not None else words[1:], WHY_OPTIONS)
    options = given.joined_with(before).joined_with(after)
    output = Output(options.format, options.output, options.width, forms=FORMS).of_rank()
    is_saved = module is None and words[0].lower().endswith(_TRACE)
    if is_saved and options.argv:
        raise UsageError(f"{words[0]} is a saved trace, and takes no arguments")
    trace = _saved(Path(words[0])) if is_saved else _run(module, words, options, output)
    from tensorlens.diagnostics.why import answer
    from tensorlens.render.answer_text import render_answer

    found = answer(trace, name, options.at, options.writes)
    output.write(render_answer(found, output.form, output.options()))
    return INTERRUPTED if trace.script.outcome == "interrupted" else OK


def _saved(path: Path) -> Trace:
    from tensorlens.records.trace_file import load

    return load(path)


def _run(module: str | None, words: Sequence[str], options: TrailingOptions, output: Output) -> Trace:
    """Runs the script as `explain --training` does, and returns its trace."""
    from tensorlens.cli.commands import is_watched, target_of
    from tensorlens.runner.launch import RunOptions, run_script

    settings = RunOptions(
        timeout=options.timeout,
        stdout_to_stderr=output.keeps_stdout,
        show_progress=is_watched(),
        training=True,
    )
    return run_script(target_of(module, words, options.argv), settings)
