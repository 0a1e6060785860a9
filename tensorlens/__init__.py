"""A borrow checker for autograd: record what a PyTorch program does to its tensors, and explain what went wrong.

    with tensorlens.trace() as lens:
        loss.backward()
    print(lens.report().diagnostics)

Importing this package imports no torch; `trace()` does.
"""

from __future__ import annotations

import sys


def _is_command() -> bool:
    """Returns whether `python -m tensorlens` is importing this package, to run it."""
    words: list[str] = getattr(sys, "argv", [])
    if words[:1] != ["-m"]:
        return False
    module = sys.orig_argv[-len(words)]
    return module == __name__ or (module.startswith("-") and module.endswith(f"m{__name__}"))


if _is_command() and not sys.flags.safe_path:
    del sys.path[0]  # the current directory: a `typing.py` there must not be imported

from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from tensorlens.records.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from tensorlens.notebook.shell import Shell
    from tensorlens.records.model import Trace
    from tensorlens.records.report import Diagnostic, Report
    from tensorlens.session import Session

__all__ = ["Diagnostic", "Report", "Trace", "__version__", "load", "trace"]


def __getattr__(name: str) -> Any:
    """Imports the records on first use: commands that show none of them start sooner."""
    if name not in ("Diagnostic", "Report", "Trace"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tensorlens.records import model, report

    return getattr(model if name == "Trace" else report, name)


def trace(
    *,
    every: int | None = None,
    steps: str | tuple[int | None, int | None] | None = None,
    training: bool = False,
) -> Session:
    """Records every torch call of the current process while the `with` block, or the decorated function, runs.

    After the block, `lens.trace()` is the `Trace`, and `lens.report()` the `Report` with its diagnostics. Both contain
    an exception that leaves the block; it is raised as usual. Blocks may be nested and repeated; afterwards torch is
    unchanged.

    A long training run is cheaper if only some of its steps are recorded: the first and each one whose number is a
    multiple of `every`, or the first and those in `steps`: `"5:8"` or `(5, 8)` are the steps 5 to 8, `"5:"` has no
    end. A step ends when `optimizer.step()` returns; in a program without an optimizer, with each backward pass. The
    report says which steps it does not know.

    With `training`, the report has a table of the parameters: gradients, optimizers, how far each has moved, and what
    stands out. Measuring costs a copy of each parameter, and up to a third of the recording's time.

    Raises:
        ValueError: a value is wrong, or both are given.
    """
    from tensorlens.records.step_choice import choice_of
    from tensorlens.session import Session

    return Session(choice_of(every, steps), training)


def load_ipython_extension(shell: Shell) -> None:
    """Records the cells of a notebook from now on, and explains those that raise: `%load_ext tensorlens`."""
    from tensorlens.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Shell) -> None:
    """Ends what `%load_ext tensorlens` began."""
    from tensorlens.notebook.extension import unload

    unload(shell)


def load(path: str | Path) -> Trace:
    """Reads a saved trace.

    Raises:
        tensorlens.errors.TraceFileError: the file is not a trace, or is damaged.
    """
    from tensorlens.records.trace_file import load as read
    from tensorlens.render.notebook import show_in_notebooks

    show_in_notebooks()
    return read(Path(path))
