"""Runs short training programs under `tensorlens.trace(training=True)`, and reads what stands out in them."""

from __future__ import annotations

import importlib.util
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

import tensorlens
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import measured_training
from tensorlens.diagnostics.standing_out.finders import FINDERS
from tensorlens.records.report import Report, StandingOut

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn


def main():
    torch.manual_seed(0)
"""


@dataclass(frozen=True)
class Ran:
    """A program that ran to its end."""

    report: Report
    text: str

    def sentences(self, module: str) -> list[StandingOut]:
        """Returns the sentences of one module of `standing_out`."""
        found: list[StandingOut] = []
        for each in FINDERS:
            if each.__module__.endswith(f".{module}"):
                training = measured_training(TraceIndex(self.report.trace))
                assert training is not None
                found += each(training)
        return found

    def line(self, mark: str) -> int:
        """Returns the number of the line that ends with a comment."""
        (number,) = [n for n, line in enumerate(self.text.splitlines(), 1) if line.endswith(f"# {mark}")]
        return number


def train(folder: Path, body: str) -> Ran:
    """Runs the statements of `body` inside a function of a file of their own."""
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    path = folder / "program.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lens = tensorlens.trace(training=True)
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about the shapes of a target
        lens(module.main)()
    torch.set_rng_state(state)
    return Ran(lens.report(), text)
