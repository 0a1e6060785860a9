"""Results that a container keeps with their graphs, step after step: found with the line that keeps them, or left
alone."""

from __future__ import annotations

import textwrap

import pytest
from support.silent import Run, expect, expect_nothing, run  # noqa: F401

CODE = "running-total-keeps-graph-alive"
START = """
import torch
from collections import deque
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train(times=1):
    for _ in range(times):
        optimizer.zero_grad()
        (net(torch.ones(4, 3)) - 1).square().mean().backward()
        optimizer.step()
"""

# What is tested: (the code that the edit makes, the program).
KEPT = {
    "slices that the log of the program gets": (
        "log.record(loss, curve.detach())",
        """
        class Log:
            def __init__(self):
                self.losses, self.curves = [], []
            def record(self, loss, curve):
                self.losses.append(loss)
                self.curves.append(curve)  # shared_here
        def validate():
            out = net(torch.zeros(4, 3))
            return out.square().mean().item(), out[:, -1]  # graph_built_here
        log = Log()
        for epoch in range(6):
            train(2)
            loss, curve = validate()
            log.record(loss, curve)
        """,
    ),
    "slices in the second of two lists": (
        "kept.append(late.detach())",
        """
        def validate():
            out = net(torch.zeros(4, 3))
            curve = out[:, 0]  # graph_built_here
            return out.mean().item(), curve
        def run():
            means, kept = [], []
            for epoch in range(12):
                train()
                mean, late = validate()
                means.append(mean)
                kept.append(late)  # shared_here
            del kept, late
        run()
        """,
    ),
    "a dict with the epochs as keys": (
        "kept[epoch] = torch.cat([out, out]).detach()",
        """
        kept = {}
        for epoch in range(6):
            train()
            out = net(torch.zeros(4, 3))
            kept[epoch] = torch.cat([out, out])  # shared_here, graph_built_here
        """,
    ),
    "results of a function that training needs": (
        "log.note(epoch, predict(torch.zeros(4, 3)).detach())",
        """
        def predict(x):
            return net(x).squeeze(1)  # graph_built_here
        class Log:
            def __init__(self):
                self.last, self.rows = None, []
            def note(self, epoch, pred):
                self.last = pred
                self.rows.append((epoch, pred))  # shared_here
        def run():
            log = Log()
            for epoch in range(24):
                optimizer.zero_grad()
                predict(torch.ones(4, 3)).square().mean().backward()
                optimizer.step()
                if epoch % 2 == 0:
                    log.note(epoch, predict(torch.zeros(4, 3)))
        run()
        """,
    ),
}


@pytest.mark.parametrize("program", KEPT)
def test_the_line_that_keeps_a_result_is_named(program: str, run: Run) -> None:  # noqa: F811
    new, text = KEPT[program]
    text = START + textwrap.dedent(text)
    found = expect(run, CODE, text)
    ((edit,),) = (each.edits for each in found.fixes)
    line = text.lstrip("\n").splitlines()[edit.span.line - 1]
    assert (line[: edit.span.column] + edit.text + line[edit.span.end_column :]).partition("  #")[0].strip() == new


def test_a_line_that_training_needs_is_not_to_be_detached(run: Run) -> None:  # noqa: F811
    text = """
    class Row:
        pass
    def predict(x):
        return net(x)[:, 0]  # shared_here, graph_built_here
    def run():
        rows = []
        for epoch in range(12):
            row = Row()
            row.out = predict(torch.zeros(4, 3))
            rows.append(row)
            optimizer.zero_grad()
            predict(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()
    run()
    """
    (help_,) = expect(run, CODE, START + textwrap.dedent(text)).fixes
    assert "a backward pass needs the graph that this line makes" in help_.title
    assert (help_.edits, help_.place) == ((), None)


def test_a_window_of_results_does_not_grow(run: Run) -> None:  # noqa: F811
    text = """
    recent = deque(maxlen=8)
    for epoch in range(40):
        train()
        recent.append(net(torch.zeros(4, 3))[:, 0])  # shared_here, graph_built_here
    """
    found = expect(run, CODE, START + textwrap.dedent(text))
    assert found.explanation.endswith("memory holds 8 graphs of earlier steps at once")


HARMLESS = {
    "cut slices, numbers and slices of parameters": """
        cut, numbers, snapshots = [], [], []
        for epoch in range(8):
            train()
            out = net(torch.zeros(4, 3))[:, 0]
            cut.append(out.detach())
            numbers.append(out.mean().item())
            snapshots.append(torch.cat([p.view(-1) for p in net.parameters()])[:5])
        """,
    "parts of an episode, for a pass at its end": """
        for episode in range(4):
            chances = []
            for move in range(6):
                chances.append(net(torch.ones(3)).log_softmax(0)[0])
            optimizer.zero_grad()
            (-torch.stack(chances).sum()).backward()
            optimizer.step()
        """,
    "outputs of a sequence that is cut now and then": """
        cell = torch.nn.GRUCell(2, 3)
        optimizer.add_param_group({"params": cell.parameters()})
        h, window = torch.zeros(1, 3), []
        for step in range(24):
            h = cell(torch.ones(1, 2), h)
            window.append(h[:, 0])
            if len(window) == 6:
                optimizer.zero_grad()
                torch.stack(window).square().sum().backward()
                optimizer.step()
                window.clear()
                h = h.detach()
        """,
    "log-probabilities of a rollout, replayed without their graph": """
        for rollout in range(5):
            with torch.no_grad():
                old = [net(torch.ones(3)).log_softmax(0)[0] for move in range(4)]
            for epoch in range(3):
                new = [net(torch.ones(3)).log_softmax(0)[0] for move in range(4)]
                ratio = (torch.stack(new) - torch.stack(old)).exp()
                optimizer.zero_grad()
                (-ratio.mean()).backward()
                optimizer.step()
        """,
    "the predictions of one evaluation, replaced by those of the next": """
        log = {}
        for epoch in range(12):
            train()
            log["curves"] = [net(torch.zeros(4, 3))[:, 0] for batch in range(5)]
        print(torch.stack(log["curves"]).mean().item() < 1e9)
        """,
    "a few predictions at the end of the run": """
        last = []
        for epoch in range(20):
            train()
            if epoch >= 16:
                last.append(net(torch.zeros(4, 3))[:, 0])
        print(torch.stack(last).std(0).mean().item() < 1e9)
        """,
    "slices that the optimizer has": """
        table = torch.zeros(6, 3, requires_grad=True)
        rows = [table[n] for n in range(6)]
        optimizer.add_param_group({"params": [table]})
        for epoch in range(6):
            train()
        """,
}


@pytest.mark.parametrize("program", HARMLESS)
def test_results_that_are_needed_cut_or_replaced_are_no_finding(program: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, START + textwrap.dedent(HARMLESS[program]))
