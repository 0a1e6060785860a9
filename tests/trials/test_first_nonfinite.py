"""The first NaN or infinity of a run with `--training` is found in a second run, and only where there is one."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import jsonschema
import pytest
import torch
from support.commands import run_command
from support.folders import DOCS, ROOT
from support.warm import Warm
from support.warm_runs import WarmRuns

import tensorlens
from tensorlens.diagnostics import report_on
from tensorlens.records.invariants import validate
from tensorlens.records.model import Gap
from tensorlens.records.report import Report
from tensorlens.records.trace_file import dumps, loads
from tensorlens.render import RenderOptions
from tensorlens.render.report.json import to_dict
from tensorlens.runner.second_run import complete
from tensorlens.tracer.saved_tensors.graph import MAX_NODES
from tensorlens.tracer.saved_tensors.nonfinite_derivatives import NOT_EXAMINED
from tensorlens.tracer.training.nonfinite_passes import TOO_LARGE

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\ntorch.manual_seed(0)\n"
LOOP = """
def train(loss_of, parameters, steps=4, lr=0.1):
    optimizer = torch.optim.SGD(list(parameters), lr=lr)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(step).backward()
        optimizer.step()

"""


def report_of(warm: Warm, folder: Path, text: str) -> tuple[Report, int]:
    """Returns the report of a program with what the second run found, and the number of runs."""
    script = folder / "program.py"
    script.write_text(HEAD + LOOP + textwrap.dedent(text).lstrip("\n"))
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    assert first.exited.returncode == 0, script.read_text()
    complete(runs, first, None)
    report = report_on(first.trace())
    assert validate(report.trace) == []
    gaps = [event.reason for event in report.trace.events if isinstance(event, Gap)]
    assert [gap for gap in gaps if "array" not in gap and "fused" not in gap and gap != NOT_EXAMINED] == []
    assert repr(loads(dumps(report.trace)).inspection) == repr(report.trace.inspection)  # NaN differs from NaN
    jsonschema.validate(to_dict(report, RenderOptions()), json.loads((DOCS / "report.schema.json").read_text()))
    return report, runs.count


def sentences(report: Report) -> list[str]:
    found = [each for each in report.standing_out or () if "a second run" in each.text or "what makes it" in each.text]
    return [each.text for each in found]


def marked_line(report: Report) -> int:
    source = next(text for file, text in report.trace.sources.items() if file.endswith("program.py"))
    return next(n for n, line in enumerate(source.splitlines(), start=1) if line.endswith("# origin"))


WRONG = {
    "log of a negative number": """
        w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        x = torch.tensor([[1.0, 2.0, 0.5], [0.3, 0.2, 0.9]])

        def loss_of(step):
            p = x * w
            y = torch.log(p)  # origin
            return (y + p).sum()

        train(loss_of, [w], lr=0.5)
        """,
    "division by zero": """
        model = nn.Linear(3, 4)
        counts = torch.tensor([3.0, 0.0, 2.0, 1.0])

        def loss_of(step):
            total = model(torch.zeros(4, 3)).sum(1)
            if step < 2:
                return total.mean()
            return (total / (counts * (step - 1))).mean()  # origin

        train(loss_of, model.parameters())
        """,
    "zero by zero": """
        w = nn.Parameter(torch.ones(5))
        mask = torch.zeros(5)

        def loss_of(step):
            errors = (w - 2).square() * mask
            return errors.sum() / mask.sum()  # origin

        train(loss_of, [w])
        """,
    "exp overflows, then inf / inf": """
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.tensor(50.0))

            def forward(self, z):
                e = (z * self.scale).exp()  # origin
                return e / e.sum(1, keepdim=True)

        head = Head()
        z = torch.tensor([[0.1, 0.2], [2.1, 0.3]])
        train(lambda step: head(z)[:, 0].mean(), head.parameters())
        """,
    "hypot at zero in backward": """
        w = nn.Parameter(torch.tensor([3.0, 0.0]))
        zero = torch.zeros(2)

        def loss_of(step):
            h = torch.hypot(w, zero)  # origin
            return (h * 2).sum()

        train(loss_of, [w])
        """,
    "a float16 gradient overflows in backward": """
        w = nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float16))

        def loss_of(step):
            wide = w.float()  # origin
            return (wide * 100000).sum()

        train(loss_of, [w])
        """,
    "gradients that a hook divides": """
        w = nn.Parameter(torch.ones(3))

        def loss_of(step):
            h = w * 0
            h.register_hook(lambda g: g / h.sum().detach())  # origin
            return h.sum()

        train(loss_of, [w])
        """,
    "a custom Function that computes in numpy": """
        import numpy

        class Root(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                root = numpy.sqrt(x.detach().numpy())
                ctx.root = root
                return torch.as_tensor(root)

            @staticmethod
            def backward(ctx, g):
                with numpy.errstate(divide="ignore"):
                    return torch.as_tensor(g.numpy() / (2 * ctx.root))  # origin

        w = nn.Parameter(torch.tensor([4.0, 0.0]))
        train(lambda step: Root.apply(w).sum(), [w])
        """,
    "a number of the script": """
        w = nn.Parameter(torch.tensor([0.0, 2.0]))
        train(lambda step: (w * math.inf).sum(), [w])  # origin
        """,
    "division by a plain zero": """
        w = nn.Parameter(torch.tensor([3.0, 2.0]))
        seen = 0

        def loss_of(step):
            return w.sum() / seen  # origin

        train(loss_of, [w])
        """,
    "whole numbers": """
        w = nn.Parameter(torch.tensor([3.0, 2.0]))
        counts = torch.tensor([0, 4])
        prior = torch.log(counts)  # origin
        train(lambda step: (w + prior).sum(), [w])
        """,
    "the closure of an optimizer": """
        w = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.LBFGS([w])
        for step in range(3):
            def closure():
                optimizer.zero_grad()
                loss = w.square().sum() if step < 2 else (w - 9).log().sum()  # origin
                loss.backward()
                return loss
            optimizer.step(closure)
        """,
    "data made in inference mode": """
        layer = nn.Linear(3, 1)
        with torch.inference_mode():
            x = torch.ones(2, 3).div_(0)  # origin
        train(lambda step: layer(x.clone()).mean(), layer.parameters())
        """,
    "no optimizer": """
        w = torch.ones(2, requires_grad=True)
        for step in range(3):
            loss = (w - 1).log().sum()  # origin
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
        """,
    "in a module of the library": """
        model = nn.Sequential(nn.Linear(2, 2), nn.Softplus())
        big = torch.tensor([[3e38, 3e38]])
        with torch.no_grad():
            model[0].weight.fill_(2.0)
        train(lambda step: model(big).mean(), model.parameters())  # origin
        """,
    "a gradient penalty": """
        w = nn.Parameter(torch.tensor([0.0, 1.0]))
        x = torch.tensor([1.0, 2.0], requires_grad=True)

        def loss_of(step):
            out = torch.hypot(x * 0, w).sum() + x.sum()
            (g,) = torch.autograd.grad(torch.hypot(x * w, x * 0).sum(), x, create_graph=True)  # origin
            return (g.norm() - 1) ** 2 + out

        train(loss_of, [w])
        """,
    "0 * inf by a mask": """
        p = nn.Parameter(torch.tensor([0.5, 0.0, 0.2]))
        mask = torch.tensor([1.0, 0.0, 1.0])

        def loss_of(step):
            logs = p.log()  # origin
            return -(mask * logs).sum()

        train(loss_of, [p])
        """,
    "softmax of rows that are all -inf": """
        layer = nn.Linear(4, 4)
        pad = torch.tensor([[False, True, True], [True, True, True]])

        def loss_of(step):
            x = torch.randn(2, 3, 4)
            scores = layer(x).sum(-1).masked_fill(pad, float("-inf"))
            weights = F.softmax(scores, dim=1)  # origin
            return (weights[..., None] * x).sum()

        train(loss_of, layer.parameters())
        """,
    "float16 overflows": """
        layer = nn.Linear(2, 2)

        def loss_of(step):
            big = layer(torch.full((1, 2), 60000.0)) * 4
            half = big.half()  # origin
            return half.float().square().sum().sqrt()

        with torch.no_grad():
            layer.weight.fill_(1.0)
        train(loss_of, layer.parameters())
        """,
    "data with NaN from numpy": """
        import numpy
        rows = numpy.ones((4, 3), dtype="float32")
        rows[2, 1] = numpy.nan
        x = torch.from_numpy(rows)  # origin
        model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
        train(lambda step: model(x).mean(), model.parameters())
        """,
    "data with NaN in one batch": """
        batches = [[1.0, 2.0], [3.0, 4.0], [5.0, float("nan")], [1.0, 1.0]]
        model = nn.Linear(2, 1)

        def loss_of(step):
            batch = torch.tensor(batches[step])  # origin
            return F.mse_loss(model(batch), torch.zeros(1))

        train(loss_of, model.parameters())
        """,
    "the forward of a custom Function": """
        class SafeLog(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return torch.log(x - 1)  # origin

            @staticmethod
            def backward(ctx, g):
                return g / (ctx.saved_tensors[0] - 1)

        w = nn.Parameter(torch.tensor([2.0, 0.5]))
        train(lambda step: SafeLog.apply(w).sum(), [w])
        """,
    "the backward of a custom Function": """
        class Norm(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                n = x.norm()
                ctx.save_for_backward(x, n)
                return n

            @staticmethod
            def backward(ctx, g):
                x, n = ctx.saved_tensors
                return g * (x / n)  # origin

        w = nn.Parameter(torch.zeros(3))
        train(lambda step: Norm.apply(w), [w])
        """,
    "std of one element": """
        w = nn.Parameter(torch.ones(1, 3))

        def loss_of(step):
            return (w / w.std(0)).sum()  # origin

        train(loss_of, [w])
        """,
    "the mean of nothing": """
        w = nn.Parameter(torch.ones(3))

        def loss_of(step):
            chosen = w[w > 2]
            return chosen.mean()  # origin

        train(loss_of, [w])
        """,
    "an optimizer that divides by zero": """
        w = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.Adam([w], eps=0.0)
        for step in range(3):
            optimizer.zero_grad()
            (w[:1].square().sum() + 0 * w.sum()).backward()
            optimizer.step()  # origin
        """,
    "weights that are not initialized": """
        w = nn.Parameter(torch.empty(3).fill_(float("nan")))  # origin
        train(lambda step: (w * 2).sum(), [w])
        """,
    "gradients that are divided by their norm": """
        w = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            (w * 0).sum().backward()
            with torch.no_grad():
                w.grad.div_(w.grad.norm())  # origin
            optimizer.step()
        """,
}


DAILY = (
    "log of a negative number",
    "exp overflows, then inf / inf",
    "hypot at zero in backward",
    "softmax of rows that are all -inf",
    "data with NaN from numpy",
    "the backward of a custom Function",
    "an optimizer that divides by zero",
)


def programs(found: dict[str, str]) -> list[object]:
    """Some every day, the others by `make fuzz`: each takes two runs."""
    return [pytest.param(name, marks=[] if name in DAILY else [pytest.mark.complete]) for name in found]


@pytest.mark.parametrize("name", programs(WRONG))
def test_the_line_of_the_first_nonfinite_is_found(name: str, warm: Warm, tmp_path: Path) -> None:
    report, count = report_of(warm, tmp_path, WRONG[name])
    (found,) = sentences(report)
    assert count == 2
    label = next(each.labels[0] for each in report.standing_out or () if each.text == found)
    assert label.span.line == marked_line(report)


ALREADY_FOUND = {
    "sqrt at zero in backward": """
        w = nn.Parameter(torch.zeros(3))

        def loss_of(step):
            return torch.sqrt(w.square() + torch.tensor([1.0, 0.0, 1.0])).sum()  # origin

        train(loss_of, [w], steps=1)
        """,
    "a norm by hand at zero in backward": """
        embed = nn.Embedding(4, 3)
        with torch.no_grad():
            embed.weight[0] = 0

        def loss_of(step):
            e = embed(torch.tensor([0, 1]))
            norm = (e * e).sum(1) ** 0.5  # origin
            return norm.sum()

        train(loss_of, embed.parameters())
        """,
}


@pytest.mark.parametrize("name", ALREADY_FOUND)
def test_a_derivative_that_a_finding_names_is_not_named_twice(name: str, warm: Warm, tmp_path: Path) -> None:
    report, count = report_of(warm, tmp_path, ALREADY_FOUND[name])
    assert count == 2
    assert sentences(report) == []
    (found,) = (each for each in report.diagnostics if each.severity == "warning")
    assert found.labels[0].span.line == marked_line(report)
    (origin,) = report.trace.inspection.origins
    assert origin.kind == "backward"
    assert "0" in origin.operands


HEALTHY = {
    "a mask of -inf": """
        layer = nn.Linear(4, 4)
        mask = torch.triu(torch.full((5, 5), float("-inf")), 1)

        def loss_of(step):
            x = torch.randn(5, 4)
            return ((layer(x) @ x.T + mask).softmax(-1) @ x).square().mean()

        train(loss_of, layer.parameters())
        """,
    "masked_fill and log_softmax": """
        layer = nn.Linear(3, 4)
        allowed = torch.tensor([True, True, False, True])

        def loss_of(step):
            logits = layer(torch.randn(2, 3)).masked_fill(~allowed, -math.inf)
            return F.cross_entropy(logits, torch.tensor([0, 3]))

        train(loss_of, layer.parameters())
        """,
    "the best loss begins at infinity": """
        layer = nn.Linear(3, 1)
        best, smallest = torch.tensor(float("inf")), math.inf

        def loss_of(step):
            global best, smallest
            loss = layer(torch.ones(2, 3)).square().mean()
            best, smallest = torch.minimum(best, loss.detach()), min(smallest, loss.item())
            return loss

        train(loss_of, layer.parameters())
        """,
    "a scaler that skips steps": """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1000)
        for step in range(8):
            optimizer.zero_grad()
            out = model(torch.full((2, 4), 100.0)).mean()
            scaler.scale(out - out.detach()).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() < 2.0**127
        """,
    "a fused optimizer that skips steps": """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, fused=True)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
        for step in range(8):
            optimizer.zero_grad()
            out = model(torch.full((2, 4), 100.0)).mean()
            scaler.scale(out - out.detach()).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() < 2.0**127
        """,
    "steps that the script skips": """
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            h = model(torch.ones(1, 2))
            (torch.hypot(h * 0, h * 0) if step == 2 else h).sum().backward()
            if all(bool(torch.isfinite(p.grad).all()) for p in model.parameters()):
                optimizer.step()
        """,
    "a metric that is NaN": """
        layer = nn.Linear(3, 1)

        def loss_of(step):
            out = layer(torch.ones(2, 3))
            with torch.no_grad():
                accuracy = torch.tensor(0.0) / torch.tensor(0.0)
            return out.square().mean()

        train(loss_of, layer.parameters())
        """,
    "NaN that is replaced": """
        layer = nn.Linear(3, 1)
        x = torch.tensor([[1.0, float("nan"), 2.0]])
        train(lambda step: layer(torch.nan_to_num(x)).square().mean(), layer.parameters())
        """,
    "large values that are finite": """
        w = nn.Parameter(torch.full((4,), 1e20))
        train(lambda step: (w * torch.tensor(1e17)).sum() * 1e-30, [w], lr=0.0)
        """,
    "gradients whose norm overflows": """
        w = nn.Parameter(torch.full((4,), 1.0))
        train(lambda step: (w * 1e25).sum(), [w], lr=0.0)
        """,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_runs_once(name: str, warm: Warm, tmp_path: Path) -> None:
    report, count = report_of(warm, tmp_path, HEALTHY[name])
    assert report.trace.inspection.nonfinite == ()
    assert sentences(report) == []
    assert count == 1


GUARDED = """
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        h = model(torch.ones(1, 2))
        torch.hypot(h * 0, h * 0).sum().backward()  # origin
        if bool(torch.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.0))):
            optimizer.step()
    """


@pytest.mark.parametrize("others", ["", "    other.grad = torch.ones(1); second.step()\n"])
def test_a_gradient_whose_steps_are_all_skipped_is_explained(others: str, warm: Warm, tmp_path: Path) -> None:
    start = "other = nn.Parameter(torch.ones(1))\nsecond = torch.optim.SGD([other], lr=0.1)\n" if others else ""
    report, count = report_of(warm, tmp_path, start + textwrap.dedent(GUARDED) + others)
    (found,) = sentences(report)
    assert count == 2
    assert found.startswith("the first NaN that gets to the gradient of `model.weight` is made in backward")
    label = next(each.labels[0] for each in report.standing_out or () if each.text == found)
    assert label.span.line == marked_line(report)


RARELY = {
    "a later pass is finite": GUARDED.replace("h * 0, h * 0", "h * (step > 1), h * 0"),
    "a step follows": GUARDED.replace("h * 0, h * 0", "h * (step > 0), h * 0"),
    "no pass is odd": GUARDED.replace("h * 0, h * 0", "h, h * 0"),
}


@pytest.mark.parametrize("name", RARELY)
def test_a_step_that_is_skipped_at_times_is_left_alone(name: str, warm: Warm, tmp_path: Path) -> None:
    report, count = report_of(warm, tmp_path, RARELY[name])
    assert report.trace.inspection.nonfinite == ()
    assert sentences(report) == []
    assert count == 1


def test_a_scaler_that_has_skipped_all_steps_is_left_alone(warm: Warm, tmp_path: Path) -> None:
    scaled = """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
        for step in range(2):
            optimizer.zero_grad()
            out = model(torch.full((2, 4), 100.0)).mean()
            scaler.scale(out - out.detach()).backward()
            scaler.step(optimizer)
            scaler.update()
        """
    assert sentences(report_of(warm, tmp_path, scaled)[0]) == []


MASKED = """
    w = nn.Parameter(torch.tensor([1.0, 2.0]))

    def loss_of(step):
        used = torch.hypot(w * 0.5 * 0, w * 0)  # origin
        zero = torch.where(torch.tensor(False), w, torch.zeros(2))
        return torch.hypot(zero, zero).sum() + used.sum()

    train(loss_of, [w])
    """


def test_a_node_whose_nan_is_masked_is_not_the_first(warm: Warm, tmp_path: Path) -> None:
    report, _ = report_of(warm, tmp_path, MASKED)
    (found,) = sentences(report)
    assert found.startswith("the first NaN that gets to the gradient of `w` is made in backward")
    assert report.standing_out is not None
    assert report.standing_out[0].labels[0].span.line == marked_line(report)


HALF = """
    model = nn.Linear(4, 1).half()
    master = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(master, lr=0.01)
    scale = 2.0**20
    for step in range(8):
        loss = model(torch.ones(2, 4).half()).float().square().mean()
        (loss * scale).backward()
        grads = [p.grad.float() / scale for p in model.parameters()]
        for p in model.parameters():
            p.grad = None
        if not all(bool(torch.isfinite(g).all()) for g in grads):
            scale /= 4
            {skip}
        for m, g, p in zip(master, grads, model.parameters()):
            m.grad = g
        optimizer.step()
        for m, p in zip(master, model.parameters()):
            p.data.copy_(m.data)
    """


@pytest.mark.parametrize(("skip", "count"), [("continue", 0), ("pass", 1)])
def test_gradients_that_no_step_follows_are_left_alone(skip: str, count: int, warm: Warm, tmp_path: Path) -> None:
    report, _ = report_of(warm, tmp_path, HALF.replace("{skip}", skip))
    assert report.trace.inspection.nonfinite != ()
    assert len(sentences(report)) == count


TWO = """
    w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def loss_of(step):
        table = torch.zeros(2, 3)
        table[0] = (w - 4).log()  # origin
        row = table[1]
        row.copy_((w - 5).sqrt())
        return table[1].sum()

    train(loss_of, [w])
    """


def test_of_two_origins_in_one_tensor_the_earliest_is_named_as_such(warm: Warm, tmp_path: Path) -> None:
    report, _ = report_of(warm, tmp_path, TWO)
    (found,) = sentences(report)
    assert found.startswith("the earliest NaN in what the loss is computed from is made by")
    assert report.trace.inspection.origins[0].mixed


UNREPEATED = """
    import os
    w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    shift = torch.tensor([float(byte) for byte in os.urandom(3)])
    train(lambda step: (w * shift).sum() if step < 2 else (w - 1000).log().sum(), [w])
    """


@pytest.mark.parametrize("deep", [True, False])
def test_a_graph_that_is_too_large_to_be_searched_is_said_to_be(deep: bool, warm: Warm, tmp_path: Path) -> None:
    depth = MAX_NODES + 1_000 if deep else 10
    program = f"""
        weight = nn.Parameter(torch.full((3,), 1e-30))
        def loss_of(step):
            y = weight * 1e20 * 1e20
            for _ in range({depth}):
                y = y * 1.00001
            return y.sum()
        train(loss_of, [weight], steps=2)
        """
    (sentence,) = sentences(report_of(warm, tmp_path, program)[0])
    assert sentence.endswith(TOO_LARGE) is deep, sentence


def test_a_program_that_does_not_repeat_itself_has_no_origin(warm: Warm, tmp_path: Path) -> None:
    report, count = report_of(warm, tmp_path, UNREPEATED)
    (found,) = sentences(report)
    assert count == 2
    assert found == (
        "the loss is nan in the 3rd training step; what makes it is not known: a second run from the same random "
        "state has other values"
    )
    assert report.trace.inspection.origins[0].kind == ""


def test_a_distributed_run_is_not_searched(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "0")
    report, count = report_of(warm, tmp_path, WRONG["zero by zero"])
    assert count == 1
    (found,) = sentences(report)
    assert found.endswith("what makes it was not searched: one process of a distributed run can't be repeated alone")


def test_a_run_inside_a_process_searches_nothing() -> None:
    w = torch.nn.Parameter(torch.zeros(2))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([w], lr=0.1)
        (w / 0).sum().backward()
        optimizer.step()
    report = report_on(lens.trace())
    assert [each.kind for each in report.trace.inspection.nonfinite] == ["loss"]
    assert report.trace.inspection.origins == ()
    assert sentences(report) == []
    assert to_dict(report, RenderOptions())["training"]["first_nonfinite"] is None


def test_the_command_runs_a_program_twice_and_says_so(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + LOOP + textwrap.dedent(WRONG["zero by zero"]) + "print('ran', torch.rand(1).item())\n")
    ran = run_command("explain", "--training", "--width", "100", script, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("ran 0.") == 1
    assert "a second run, to find the first NaN or infinity" in re.sub(r"\s+", " ", ran.stdout)
    assert "of a second run: it is given 0 and 0" in re.sub(r"\s+", " ", ran.stdout)


def test_the_document_shows_what_the_command_prints() -> None:
    shown = re.findall(r"```text\n(.*?)\n```", (DOCS / "training.md").read_text(), re.S)
    (block,) = (each for each in shown if "a second run" in each)
    ran = run_command("explain", "--training", "--width", "80", "docs/examples/log_of_a_ratio.py", cwd=ROOT)
    last_digit = re.compile(r"(-3\.8678)\d")  # differs between processors
    assert last_digit.sub(r"\1", f"{block}\n") in last_digit.sub(r"\1", ran.stdout)
