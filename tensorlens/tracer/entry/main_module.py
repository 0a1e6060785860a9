"""Prepares the program to run: its `__main__` module, its code, and the `sys.path` and `sys.argv` of plain Python."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import pkgutil
import runpy
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlens.journal.child_config import ChildConfig
from tensorlens.records.source_encoding import decoded
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.recording.recorder import Recorder

if TYPE_CHECKING:  # imported only if the script has claims to check
    from tensorlens.tracer.entry.claim_checker import ClaimChecker


class Program:
    """A script, a directory or zip file with a `__main__`, a module, or standard input.

    `path`: the rest of `sys.path`, after the entry that Python puts first.
    """

    def __init__(self, config: ChildConfig, path: Sequence[str]) -> None:
        self.kind: str = config.kind
        self.name = config.name
        self.wants_claims = config.check_claims
        self._replaced = {} if config.compared is None else dict(config.compared.sources)
        self.checker: ClaimChecker | None = None
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = builtins
        if "__annotations__" in vars(sys.modules["__main__"]):  # not since Python 3.14, unless the program has some
            self.module.__dict__.update(__annotations__={})
        sys.modules["__main__"] = self.module
        sys.argv[:] = [self.name, *config.argv]
        self.filename = {"module": self.name, "stdin": "<stdin>"}.get(self.kind) or os.path.abspath(self.name)
        if self.kind == "file" and pkgutil.get_importer(self.filename) is not None:
            self.kind = "container"
        sys.path[:] = [*self._first(), *path]

    def _first(self) -> list[str]:
        """Returns the entry that begins `sys.path`. With -P or PYTHONSAFEPATH, only a container has one."""
        if self.kind == "container":
            return [self.filename]
        if sys.flags.safe_path:
            return []
        if self.kind == "file":
            return [os.path.dirname(os.path.realpath(self.name))]
        return [os.getcwd() if self.kind == "module" else ""]

    def load(self, recorder: Recorder) -> types.CodeType:
        """Returns the code to run. Files that this run replaces are read from their copies.

        Raises:
            SyntaxError, ImportError: the program's own.
        """
        if self._replaced:
            from tensorlens.tracer.entry.replaced_sources import replace_sources

            replace_sources(self._replaced, recorder)
        details: Any = runpy
        if self.kind == "container":
            return self._load_module(*details._get_main_module_details())
        if self.kind == "module":
            code = self._load_module(*details._get_module_details(self.name))
            sys.argv[0] = self.filename
            return code
        return self._load_text(recorder)

    def _load_text(self, recorder: Recorder) -> types.CodeType:
        if self.kind == "stdin":
            source = sys.stdin.buffer.read()
            if self.filename in self._replaced:
                source = Path(self._replaced[self.filename]).read_bytes()
        else:
            with open(self._replaced.get(self.filename, self.filename), "rb") as file:
                source = file.read()
            compiled = source.startswith(importlib.util.MAGIC_NUMBER)
            self.module.__dict__.update(__file__=self.filename, __cached__=None)
            kind = importlib.machinery.SourcelessFileLoader if compiled else importlib.machinery.SourceFileLoader
            self.module.__loader__ = loader = kind("__main__", self.filename)
            if compiled:
                code = loader.get_code("__main__")
                assert code is not None
                return code
        text = decoded(source)
        recorder.sites.remember(self.filename, text)
        code = compile(source, self.filename, "exec", dont_inherit=True)
        if self.wants_claims:
            with ErrorGuard(recorder, "its claims"):
                code = self._checked(source, text, recorder)
        assert isinstance(code, types.CodeType)
        return code

    def _checked(self, source: bytes, text: str, recorder: Recorder) -> types.CodeType:
        """Returns the code with calls in it that check its claims."""
        from tensorlens.records import claim_syntax
        from tensorlens.tracer.entry.claim_checker import ClaimChecker

        checker = ClaimChecker(claim_syntax.parse(text), recorder.quiet)
        code = checker.instrument(source, self.filename)
        self.checker = checker
        return code

    def _load_module(self, _: str, spec: importlib.machinery.ModuleSpec, code: types.CodeType) -> types.CodeType:
        """Returns the code of a module that runpy has found. `__main__` takes its names."""
        assert spec.origin is not None
        self.filename = spec.origin
        self.module.__dict__.update(
            __spec__=spec, __package__=spec.parent, __file__=spec.origin, __cached__=spec.cached
        )
        self.module.__loader__ = spec.loader
        return code
