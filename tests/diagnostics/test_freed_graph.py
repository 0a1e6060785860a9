"""The node that a second backward pass met freed: what the report says of it, against what plain PyTorch shows.

The truth is measured without the lens: anomaly mode shows which node failed and where it was made, and the saved
tensors of every node are looked at before and after each pass.
"""

from __future__ import annotations

import re
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.invariants import validate

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""
PROGRAMS = {
    "log-probabilities never cleared": """
        from torch.distributions import Categorical
        net = nn.Linear(4, 2)
        saved = []
        for it in range(2):
            for t in range(60):
                m = Categorical(torch.softmax(net(torch.randn(1, 4)), dim=1))
                saved.append(m.log_prob(m.sample()))
            losses = []
            for log_prob, R in zip(saved, torch.randn(60)):
                losses.append(-log_prob * R)
            loss = torch.cat(losses).sum()
            loss.backward()
        """,
    "hidden state not detached": """
        cell = nn.RNNCell(2, 3)
        head = nn.Linear(3, 1)
        h = torch.zeros(1, 3)
        for step in range(3):
            h = cell(torch.ones(1, 2), h)
            loss = head(h).square().sum()
            loss.backward()
        """,
    "hidden state of a long unrolled network": """
        cell = nn.GRUCell(2, 3)
        h = torch.zeros(1, 3)
        for chunk in range(2):
            loss = 0
            for step in range(80):
                h = cell(torch.ones(1, 2), h)
                loss = loss + h.square().sum()
            loss.backward()
        """,
    "detached in place, but for the cell state": """
        cell = nn.LSTMCell(2, 3)
        h, c = torch.zeros(1, 3), torch.zeros(1, 3)
        for step in range(3):
            h, c = cell(torch.ones(1, 2), (h, c))
            loss = h.square().sum()
            loss.backward()
            h.detach_()
        """,
    "two losses with one trunk": """
        trunk, left, right = nn.Linear(2, 3), nn.Linear(3, 1), nn.Linear(3, 1)
        features = torch.tanh(trunk(torch.ones(4, 2)))
        one = left(features).exp().mean()
        two = right(features).exp().mean()
        one.backward()
        two.backward()
        """,
    "what was computed before and not freed is none of it": """
        w = torch.ones(3, requires_grad=True)
        shared = w.exp()
        ahead = [w.sin().cos() for _ in range(70)]
        shared.sum().backward()
        (sum(ahead) + shared).sum().backward()
        """,
    "GAN without detach": """
        G, D = nn.Linear(2, 2), nn.Linear(2, 1)
        noise = torch.randn(4, 2)
        fake = torch.tanh(G(noise))
        d_loss = F.softplus(D(fake)).mean() + F.softplus(-D(torch.ones(4, 2))).mean()
        d_loss.backward()
        g_loss = F.softplus(-D(fake)).mean()
        g_loss.backward()
        """,
    "retain_graph on the first of three passes": """
        w = torch.ones(3, requires_grad=True)
        y = w.exp().sum()
        y.backward(retain_graph=True)
        y.backward()
        y.backward()
        """,
    "the graph was kept by create_graph": """
        w = torch.ones(3, requires_grad=True)
        y = w.exp().sum()
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        g.sum().backward()
        y.backward()
        """,
    "create_graph that frees": """
        w = torch.ones(3, requires_grad=True)
        y = (w * w * w).sum()
        (g,) = torch.autograd.grad(y, w, create_graph=True, retain_graph=False)
        y.backward()
        """,
    "double backward over what was freed": """
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        z = y.square().sum()
        (g,) = torch.autograd.grad(z, y, create_graph=True)
        z.backward()
        (g * y).sum().backward()
        """,
    "a gradient penalty used twice": """
        net = nn.Linear(2, 1)
        x = torch.ones(4, 2, requires_grad=True)
        out = net(x).tanh().sum()
        (g,) = torch.autograd.grad(out, x, create_graph=True)
        penalty = g.square().sum()
        penalty.backward()
        penalty.backward()
        """,
    "only some inputs were asked for": """
        a = torch.ones(3, requires_grad=True)
        b = torch.ones(3, requires_grad=True)
        left = a.exp()
        right = b.sin()
        out = (left + right).sum()
        torch.autograd.grad(out, b)
        out.backward()
        """,
    "inside a module": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(2, 3)
                self.cache = None
            def forward(self, x):
                if self.cache is None:
                    self.cache = torch.sigmoid(self.inner.weight)
                return F.linear(x, self.cache).sum()
        net = Net()
        def train():
            for step in range(2):
                net(torch.ones(4, 2)).backward()
        train()
        """,
    "weights normalised once": """
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(3, 2))
                self.normed = F.normalize(self.weight, dim=1)
            def forward(self, x):
                return F.linear(x, self.normed)
        net = nn.Sequential(Norm(), nn.ReLU())
        for step in range(2):
            loss = F.mse_loss(net(torch.ones(4, 2)), torch.zeros(4, 3))
            loss.backward()
        """,
    "a custom function": """
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 3
            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return 3 * x * x * g
        w = torch.ones(3, requires_grad=True)
        y = Cube.apply(w)
        for step in range(2):
            (y * step).sum().backward()
        """,
    "a running average": """
        w = torch.ones(3, requires_grad=True)
        average = torch.zeros(3)
        for step in range(3):
            average = 0.9 * average + 0.1 * (w * w)
            average.sum().backward()
        """,
    "an embedding computed once": """
        table = nn.Embedding(5, 3)
        known = table(torch.arange(5)).softmax(1)
        for row in range(2):
            loss = known[row].log().sum()
            loss.backward()
        """,
    "a failed pass freed a part of it": """
        w = torch.ones(3, requires_grad=True)
        a = w.exp()
        b = a.tanh()
        c = b.sin()
        a.mul_(2)
        try:
            c.sum().backward()
        except RuntimeError:
            pass
        c.sum().backward()
        """,
    "views and writes": """
        w = torch.ones(4, requires_grad=True)
        buffer = torch.zeros(4)
        buffer[:2] = w[:2].exp()
        for step in range(2):
            buffer[2:] = w[2:].sin()
            buffer.square().sum().backward()
        """,
    "a library's layer": """
        attention = nn.MultiheadAttention(4, 2, batch_first=True)
        memory = torch.randn(1, 3, 4)
        keys = nn.Linear(4, 4)(memory).relu()
        for step in range(2):
            out, weights = attention(torch.randn(1, 1, 4), keys, keys)
            loss = out.square().sum()
            loss.backward()
        """,
}


class Truth:
    """Runs a program plainly: which node fails, the line that made it, and the line of the pass that had freed it."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._freed: dict[Any, int] = {}
        self._nodes: set[Any] = set()
        self.name, self.built, self.by = "", 0, 0

    def measure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = getattr(torch.autograd, "_engine_run_backward")  # noqa: B009 - not exported

        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            nodes = list(_below(outputs))
            before = {node for node in nodes if _is_freed(node)}
            try:
                return engine(outputs, *args, **kwargs)
            except RuntimeError:
                self._shown_before = {node: self._freed.get(node, 0) for node in nodes if node in self._freed}
                raise
            finally:
                line = self._line(traceback.extract_stack())
                self._nodes.update(nodes)
                whole = [node for node in nodes if node not in before and node not in self._freed]
                for node in whole:
                    frees = node.name().endswith("CopySlices") and not args[1]  # it shows nothing of what it keeps
                    if frees or _is_freed(node):
                        self._freed[node] = line

        monkeypatch.setattr(torch.autograd, "_engine_run_backward", run_backward)
        with warnings.catch_warnings(record=True) as shown, torch.autograd.set_detect_anomaly(True, check_nan=False):
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="a second time"):
                exec(compile(Path(self._path).read_text(), self._path, "exec"), {"__name__": "__main__"})
        text = [str(warning.message) for warning in shown if "Error detected in" in str(warning.message)][-1]
        failed = [n for n in self._nodes if (stack := "".join(n.metadata.get("traceback_", ()))) and stack in text]
        own = [node for node in failed if text.startswith(f"Error detected in {node.name()}.")]
        (line,) = {self._shown_before[node] for node in own if node in self._shown_before}
        self.name, self.by = own[0].name().rpartition("::")[2], line
        self.built = int(re.findall(rf'"{re.escape(self._path)}", line (\d+)', text)[-1])

    def _line(self, stack: traceback.StackSummary) -> int:
        return int([frame.lineno or 0 for frame in stack if frame.filename == self._path][-1])


def _below(outputs: Any) -> Iterator[Any]:
    queue = [tensor.grad_fn for tensor in outputs]
    seen = set(queue)
    while queue:
        node = queue.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def _is_freed(node: Any) -> bool:
    names = [name for name in dir(node) if name.startswith("_saved_") or name == "saved_tensors"]
    try:
        for name in names:
            getattr(node, name)
    except RuntimeError as error:
        return "a second time" in str(error)
    return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_node_its_line_and_the_pass_that_freed_it(
    name: str, warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + textwrap.dedent(PROGRAMS[name]))
    truth = Truth(script)
    with monkeypatch.context() as patching:
        truth.measure(patching)
    _, trace = warm.traced(script)
    assert validate(trace) == []
    (found,) = [diagnostic for diagnostic in diagnose(trace) if diagnostic.severity == "error"]
    assert found.code == "backward-through-freed-graph"
    lines = {label.role: label.span.line for label in found.labels}
    told = found.evidence["node"], lines.get("graph_built_here"), lines.get("freed_here")
    assert told == (truth.name, truth.built, truth.by)
