"""Is what `%load_ext tensorlens` puts into a shell: it records from then on, and speaks below the cells."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from tensorlens.errors import TensorLensError
from tensorlens.notebook.display import Display
from tensorlens.notebook.kernel_recording import KernelRecording
from tensorlens.notebook.shell import Shell
from tensorlens.tracer.isolation.hidden_frames import strip

MAGIC = "tensorlens"
OF_CELL = "--cell"
_NOT_RECORDED = "what `%timeit` runs is not recorded, so that its times are PyTorch's own"
_COMMANDS = ("report", "why", "save", "reset", "off", "on", "help")
_LOAD = "`%load_ext tensorlens`"
_SHARE = 0.2  # of the time that looking for silent mistakes may take
HELP = """\
%tensorlens             the report of everything since %load_ext tensorlens
%%tensorlens            as the first line of a cell: its report, below it
%tensorlens why NAME    what is known of a tensor: its gradient, who wrote to it, what shares its memory
%tensorlens save FILE   saves what is recorded; `tensorlens view FILE` shows it
%tensorlens reset       forgets what is recorded, and begins again
%tensorlens off         stops recording: PyTorch is as before
%tensorlens on          begins to record again"""

_loaded: WeakKeyDictionary[Any, Extension] = WeakKeyDictionary()


def load(shell: Shell) -> None:
    """Begins to record what the cells of a shell do."""
    if shell not in _loaded:
        extension = _loaded[shell] = Extension(shell)
        extension.install()


def unload(shell: Shell) -> None:
    """Ends the recording. The shell and PyTorch are as before."""
    extension = _loaded.pop(shell, None)
    if extension is not None:
        extension.remove()


class Extension:
    """The events of one shell, its recording, and the commands of `%tensorlens`."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._display = Display(shell)
        self._recording: KernelRecording | None = None
        self._looked = 0.0  # when the last search for silent mistakes ended
        self._took = 0.0  # the seconds that it took
        self._reports_cell = False
        self._replaced: dict[tuple[str, str], Callable[..., object]] = {}  # magics, by kind and name
        self._shown: BaseException | None = None  # the exception whose traceback the running cell has shown

    def install(self) -> None:
        """Registers the events and the magic, and begins to record."""
        events: Any = self._shell.events
        events.register("pre_run_cell", self._before_cell)
        events.register("post_run_cell", self._after_cell)
        self._shell.input_transformers_cleanup.append(with_report)
        for kind in ("line", "cell"):
            self._shell.register_magic_function(self._line if kind == "line" else self._cell, kind, MAGIC)
        for name, change in (("timeit", self._pausing), ("time", self._naming)):
            for kind in ("line", "cell"):
                magic = self._shell.find_magic(name, kind)
                if magic is not None:
                    self._replaced[kind, name] = magic
                    self._shell.magics_manager.magics[kind][name] = change(magic)
        vars(self._shell)["showtraceback"] = self._without_our_frames(self._shell.showtraceback)
        self._begin(_LOAD)

    def remove(self) -> None:
        """Undoes what `install` did."""
        self._end()
        events: Any = self._shell.events
        events.unregister("pre_run_cell", self._before_cell)
        events.unregister("post_run_cell", self._after_cell)
        self._shell.input_transformers_cleanup.remove(with_report)
        for kind in ("line", "cell"):
            self._shell.magics_manager.magics[kind].pop(MAGIC, None)
        for (kind, name), magic in self._replaced.items():
            self._shell.magics_manager.magics[kind][name] = magic
        vars(self._shell).pop("showtraceback", None)

    def _begin(self, command: str) -> None:
        if self._recording is None:
            self._recording = KernelRecording(self._shell, command)

    def _end(self) -> None:
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.end()

    # --- events -----------------------------------------------------------------------------------------------------

    def _before_cell(self, info: object) -> None:
        self._reports_cell = False
        self._shown = None
        recording = self._recording
        if recording is not None:
            with self._one_line_errors():
                recording.begin_cell(getattr(info, "cell_id", None))

    def _after_cell(self, result: Any) -> None:
        recording = self._recording
        if recording is None:
            return
        with self._one_line_errors():
            error, self._shown = result.error_in_exec or self._shown, None  # `%run` shows an exception, and ends well
            explained = error if isinstance(error, Exception) else None
            if self._reports_cell and explained is None:
                self._display.cell_report(*recording.report_on_cell())
            elif explained is not None or (error is None and self._is_time_to_look(recording)):
                began = time.perf_counter()
                self._display.cell(recording.after_cell(explained))
                self._looked = time.perf_counter()
                self._took = self._looked - began

    def _is_time_to_look(self, recording: KernelRecording) -> bool:
        """Returns whether to look for silent mistakes: in a long recording that takes a while, for which short cells do
        not wait each time. A later cell shows them."""
        return self._took <= _SHARE * (time.perf_counter() - self._looked) and recording.has_news()

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        """Keeps exceptions of this package out of the notebook: it gets one line."""
        try:
            yield
        except KeyboardInterrupt:
            print("tensorlens: interrupted")
        except TensorLensError as error:
            print(f"tensorlens: {error}")
        except Exception as error:
            if os.environ.get("TENSORLENS_DEBUG"):
                raise
            print(f"tensorlens: internal error: {type(error).__name__}: {error}"[:200])

    def _pausing(self, magic: Callable[..., object]) -> Callable[..., object]:
        """Makes a magic run without the recording: `%timeit` measures PyTorch, not this package."""

        @functools.wraps(magic)
        def paused(*args: object, **kwargs: object) -> object:
            if self._recording is None:
                return magic(*args, **kwargs)
            with self._recording.paused(_NOT_RECORDED):
                return magic(*args, **kwargs)

        return paused

    def _naming(self, magic: Callable[..., object]) -> Callable[..., object]:
        """Makes the lines below `%%time` known as lines of their cell."""

        @functools.wraps(magic)
        def named(line: str, cell: str | None = None, **kwargs: object) -> object:
            if self._recording is not None:
                with self._one_line_errors():
                    self._recording.begin_timed(cell)
            return magic(line, **kwargs) if cell is None else magic(line, cell, **kwargs)

        return named

    def _without_our_frames(self, show: Callable[..., None]) -> Callable[..., None]:
        """Shows tracebacks as they are without the recording. `%debug` sees the same frames."""

        def showtraceback(*args: Any, **kwargs: Any) -> None:
            error = sys.exc_info()[1]
            self._shown = error
            with self._one_line_errors():
                if error is not None:
                    strip(error)
            show(*args, **kwargs)

        return showtraceback

    # --- commands ---------------------------------------------------------------------------------------------------

    def _line(self, line: str) -> None:
        """Reports on everything recorded so far; `%tensorlens help` lists what else there is."""
        words = line.split(maxsplit=1)
        command, rest = (words[0] if words else "report"), (words[1].strip() if len(words) > 1 else "")
        with self._one_line_errors():
            if command == OF_CELL:
                self._reports_cell = True
            elif command not in _COMMANDS:
                raise TensorLensError(f"there is no `%tensorlens {command}`: there are {', '.join(_COMMANDS)}")
            else:
                self._run(command, rest)

    def _cell(self, line: str, cell: str) -> None:
        """Runs a cell that begins in another magic, and shows its report."""
        with self._one_line_errors():
            if line.strip():
                raise TensorLensError("`%%tensorlens` takes nothing more")
        self._reports_cell = bool(getattr(self._shell.run_cell(cell), "success", False))

    def _active(self) -> KernelRecording:
        if self._recording is None:
            raise TensorLensError("nothing is recorded: `%tensorlens on` begins")
        return self._recording

    def _run(self, command: str, rest: str) -> None:
        if command in ("why", "save"):
            (self._why if command == "why" else self._save)(rest)
        elif rest:
            raise TensorLensError(f"`%tensorlens {command}` takes nothing more")
        elif command == "help":
            self._display.text(HELP)
        elif command == "on":
            self._begin("`%tensorlens on`")
        elif command == "off":
            self._end()
        elif command == "reset":
            self._active()
            self._end()
            self._begin("`%tensorlens reset`")
        else:
            self._display.report(self._active().report())

    def _save(self, rest: str) -> None:
        from tensorlens.records.trace_file import save

        if not rest:
            raise TensorLensError("save to which file? `%tensorlens save trace.json`")
        try:
            save(self._active().trace(), Path(rest).expanduser())
        except OSError as error:
            raise TensorLensError(f"{rest}: {error.strerror or error}") from None

    def _why(self, rest: str) -> None:
        from tensorlens.diagnostics.why import answer
        from tensorlens.render.answer_text import render_answer
        from tensorlens.render.options import RenderOptions

        if not rest:
            raise TensorLensError("why what? `%tensorlens why NAME`")
        found = answer(self._active().trace(), rest)
        self._display.text(render_answer(found, "table", RenderOptions(width=self._display.width)).rstrip("\n"))


def with_report(lines: list[str]) -> list[str]:
    """Makes a first line `%%tensorlens` a command, so that the rest of the cell runs as any cell does."""
    if not lines or lines[0].strip() != f"%%{MAGIC}" or any(line.startswith("%%") for line in lines[1:2]):
        return lines
    return [f"get_ipython().run_line_magic({MAGIC!r}, {OF_CELL!r})\n", *lines[1:]]
