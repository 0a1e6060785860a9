"""Runs lessons one after the other, untraced, and answers with their claims: the child process of `claims`.

One process for all of them: torch takes longer to import than the lessons take to run.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import types
from dataclasses import astuple

import torch

from tensorlens.records import claim_syntax
from tensorlens.records.claim import Claim
from tensorlens.tracer.entry.claim_checker import ClaimChecker


def main() -> None:
    """Reads a JSON list of paths from standard input and writes {"torch": VERSION, "claims": [[CLAIM…]…]}."""
    paths = json.load(sys.stdin)
    found = [[astuple(claim) for claim in check(path)] for path in paths]
    json.dump({"torch": str(torch.__version__), "claims": found}, sys.stdout)


def check(path: str) -> tuple[Claim, ...]:
    """Runs a lesson to its end and returns its claims. Its output is dropped."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    checker = ClaimChecker(claim_syntax.parse(source), contextlib.nullcontext)
    module = types.ModuleType("__main__")
    module.__file__ = path
    code = checker.instrument(source, path)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(code, module.__dict__)
        except (Exception, SystemExit):
            pass  # a lesson may end in an error, which its claims check
    torch.set_grad_enabled(True)
    return checker.results()
