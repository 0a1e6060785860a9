"""Checks what `--training` says about results that stay alive, more and more of them, and about the most memory."""

from __future__ import annotations

import textwrap
from itertools import pairwise
from pathlib import Path

import pytest
from support.script_under_training import said, traced_script

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.held_memory import bytes_text, most_memory
from tensorlens.analysis.training.measured import MeasuredTraining, measured_training
from tensorlens.records.model import Trace
from tensorlens.records.source import line_at
from tensorlens.render.report.training_section import memory_text

START = """
import torch
from collections import deque
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

def step():
    out = net(torch.ones(1000, 3))
    loss = out.square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    return out, loss
"""

KEPT = {
    "outputs in a list": (
        "2 from earlier steps at step 4, 14 at step 16 (224 kB); `outs` holds them",
        """
        outs = []
        for _ in range(20):
            out, _ = step()
            outs.append(out.detach().clone())  # here
        """,
    ),
    "a memory in an object": (
        "; `agent.memory` holds them",
        """
        class Agent:
            def __init__(self):
                self.memory = []
            def remember(self, out):
                self.memory.append((1, out.detach() * 2))  # here
        agent = Agent()
        for _ in range(20):
            agent.remember(step()[0])
        """,
    ),
    "a list of a function": (
        "results of `torch.randn(1000, 8)` stay alive",
        """
        def run():
            batches = []
            for _ in range(40):
                batches.append(torch.randn(1000, 8))  # here
                step()
        run()
        """,
    ),
    "a closure": (
        "results of `out.detach().exp()` stay alive",
        """
        def keeper(value):
            return lambda: value
        kept = []
        for _ in range(20):
            out, _ = step()
            kept.append(keeper(out.detach().exp()))  # here
        """,
    ),
    "emptied before the end": (
        "results of `out.detach() + 1` stay alive",
        """
        cache = {}
        for t in range(20):
            out, _ = step()
            cache[t] = out.detach() + 1  # here
        cache.clear()
        """,
    ),
    "a list that is cleared at the end": (
        "results of `out.detach() * 2` stay alive",
        """
        outs = []
        for _ in range(20):
            out, _ = step()
            outs.append(out.detach() * 2)  # here
        mean = torch.stack(outs).mean()
        outs.clear()
        """,
    ),
    "a dict": (
        "; `cache` holds them",
        """
        cache = {}
        for t in range(20):
            out, _ = step()
            cache[t] = out.detach() + 1  # here
        """,
    ),
    "a deque without an end": (
        "; `last` holds them",
        """
        last = deque()
        for _ in range(20):
            out, _ = step()
            last.append(out.detach() + 1)  # here
        """,
    ),
    "a dict of lists in an object": (
        "; `log.values` holds them",
        """
        class Log:
            def __init__(self):
                self.values = {"out": []}
        log = Log()
        for _ in range(20):
            out, _ = step()
            log.values["out"].append(out.detach() + 1)  # here
        """,
    ),
    "attributes of many objects": (
        "results of `out.detach().cos()` stay alive",
        """
        class Record:
            def __init__(self, out):
                self.out = out.detach().cos()  # here
        records = []
        for _ in range(20):
            records.append(Record(step()[0]))
        """,
    ),
    "generators that wait": (
        "results of `out.detach().tanh()` stay alive",
        """
        def waiting(out):
            kept = out.detach().tanh()  # here
            yield kept
            yield kept
        generators = []
        for _ in range(20):
            generator = waiting(step()[0])
            next(generator)
            generators.append(generator)
        """,
    ),
    "tracebacks of errors": (
        "results of `out.detach().sin()` stay alive",
        """
        def fails(out):
            wave = out.detach().sin()  # here
            raise ValueError("too low")
        errors = []
        for _ in range(20):
            try:
                fails(step()[0])
            except ValueError as error:
                errors.append(error)
        """,
    ),
    "a linked list": (
        "results of `out.detach() + 2` stay alive",
        """
        head = None
        for _ in range(20):
            head = (head, step()[0].detach())[::-1]
            out = head[0]
            head = (out.detach() + 2, head[1])  # here
        """,
    ),
    "a default argument": (
        "results of `out.detach() + 3` stay alive",
        """
        def remember(out, seen=[]):
            seen.append(out.detach() + 3)  # here
        for _ in range(20):
            remember(step()[0])
        """,
    ),
}

RIGHT = {
    "snapshots of weights that are averaged at the end": """
        net = nn.Linear(1000, 100); opt = torch.optim.SGD(net.parameters(), lr=0.01); kept = []
        for _ in range(30):
            opt.zero_grad(); net(torch.ones(2, 1000)).square().mean().backward(); opt.step()
            kept.append({name: p.detach().clone() for name, p in net.named_parameters()})
        with torch.no_grad():
            for name, p in net.named_parameters():
                p.copy_(torch.stack([each[name] for each in kept[20:]]).mean(0))
        """,
    "numbers": """
        losses = [step()[1].item() for _ in range(20)]
        """,
    "small results without a graph": """
        losses = [step()[1].detach() for _ in range(20)]
        """,
    "numbers with the memory of all errors": """
        losses = [nn.functional.mse_loss(step()[0], torch.zeros(1000, 4)).detach() for _ in range(20)]
        """,
    "a memory of small states": """
        states = [step()[0][:4].detach().clone() for _ in range(40)]
        """,
    "the last few": """
        last = deque(maxlen=2)
        for _ in range(20):
            last.append(step()[0].detach().clone())
        """,
    "a list that each epoch begins again": """
        for _ in range(7):
            outs = []
            for _ in range(3):
                outs.append(step()[0].detach().clone())
        """,
    "batches made before": """
        batches = [torch.randn(1000, 3) for _ in range(20)]
        for batch in batches:
            opt.zero_grad(); net(batch).mean().backward(); opt.step()
        """,
    "a moving average": """
        mean = torch.zeros(1000, 4)
        for _ in range(20):
            mean = 0.9 * mean + 0.1 * step()[0].detach()
        """,
    "state of an optimizer": """
        opt = torch.optim.Adam(net.parameters())
        for _ in range(20):
            step()
        """,
}


@pytest.mark.parametrize("kind", KEPT)
def test_what_is_kept_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")
    sentence, script = KEPT[kind]
    found, _ = said(tmp_path, START + textwrap.dedent(script), "stay alive")
    assert [each.text for each in found if sentence in each.text]
    assert len(found) == 1
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


@pytest.mark.parametrize("kind", RIGHT)
def test_bounded_memory_is_no_news(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")
    assert said(tmp_path, START + textwrap.dedent(RIGHT[kind]), "stay alive")[0] == []


def test_a_finding_about_kept_graphs_is_not_said_again(tmp_path: Path) -> None:
    script = "losses = []\nfor _ in range(20):\n    losses.append(step()[1])\n"
    found, codes = said(tmp_path, START + script, "stay alive")
    assert "running-total-keeps-graph-alive" in codes
    assert found == []


def test_a_line_that_reads_old_results_is_labelled(tmp_path: Path) -> None:
    script = """
    later = []
    for _ in range(20):
        out, _ = step()
        later.append(lambda out=out.detach().exp(): out.mean())
    means = [each() for each in later]
    """
    found, _ = said(tmp_path, START + textwrap.dedent(script), "stay alive")
    assert [label.text for label in found[0].labels] == ["made here"]  # the same line

    script = script.replace("lambda out=out.detach().exp(): out.mean()", "out.detach().exp()")
    script = script.replace("each()", "each.mean()")
    found, _ = said(tmp_path, START + textwrap.dedent(script), "stay alive")
    made, read = found[0].labels
    assert read.text == "reads one of them after later steps"
    assert read.span.line == made.span.line + 1


def test_the_looks_count_blocks_and_bytes(tmp_path: Path) -> None:
    script = """
    outs = []
    for _ in range(9):
        out, _ = step()
        outs.append(out.detach().clone())
    """
    trace = traced_script(tmp_path, START + textwrap.dedent(script))
    looks = trace.inspection.memory
    assert [(look.step, look.begun) for look in looks] == [(n, begun) for n in (1, 2, 4, 8) for begun in (n, 0)]
    at_steps = [look for look in looks if not look.begun]
    # at each look: 2 parameters and their gradients, the ones, `out`, `loss`, and those of the step before
    grown = [(later.live - look.live, later.size - look.size) for look, later in pairwise(at_steps[1:])]
    assert grown == [(2, 2 * 16_000), (4, 4 * 16_000)]
    assert memory_text(measured(trace)) is None  # too little to show
    most = most_memory(TraceIndex(trace))
    assert most is not None
    assert (most.look.step, most.look.begun, most.look.saved) == (8, 8, 12_000)  # the ones, before the last pass
    assert most.made[0][1] == 7 * 16_000


@pytest.mark.parametrize(("size", "text"), [(1, "1 byte"), (999, "999 bytes"), (1_500, "1.5 kB"), (64_000_000, "64 MB"),
                                            (2_340_000_000, "2.34 GB"), (3e12, "3 TB")])  # fmt: skip
def test_bytes(size: int, text: str) -> None:
    assert bytes_text(size) == text


def test_the_most_memory_is_shown(tmp_path: Path) -> None:
    script = "big = torch.zeros(1000, 500)\nfor _ in range(4):\n    step()\n"
    text = memory_text(measured(traced_script(tmp_path, START + script)))
    assert text is not None
    assert text.startswith(
        "memory: 2.03 MB when backward pass 1 begins, the most of 6 looks: 2.02 MB in 5 live tensors"
    )
    script = "big = torch.zeros(1000, 500)\nfor _ in range(4):\n    opt.step()\n"
    text = memory_text(measured(traced_script(tmp_path, START + script)))
    assert text is not None
    assert text.startswith("memory: 2 MB in 3 live tensors when step 1 begins, the most of 3 looks: line 16 made 2 MB")


def measured(trace: Trace) -> MeasuredTraining:
    training = measured_training(TraceIndex(trace))
    assert training is not None
    return training
