"""Tests the numbers of a run's summary, in real runs of small programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from support.warm import Warm

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.training.module_rows import FEW, MAX_ROWS, ModuleRow, module_rows
from tensorlens.analysis.training.run_summary import RunSummary, is_complete, run_summary
from tensorlens.journal.batches import unpack
from tensorlens.journal.reader import Reader
from tensorlens.records.model import Script, Trace

Run = Callable[..., Trace]
NET = "net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))\nx = torch.ones(5, 3)\n"
SGD = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
ROUND = "opt.zero_grad()\nnet(x).sum().backward()\nopt.step()\n"


def looped(lines: str, times: int) -> str:
    return f"for round in range({times}):\n" + "".join(f"    {line}\n" for line in lines.splitlines())


@pytest.fixture
def run(warm: Warm, tmp_path: Path) -> Run:
    def run(text: str, window: int | None = None) -> Trace:
        path = tmp_path / "script.py"
        path.write_text("import torch\n" + text, encoding="utf-8")
        script = Script(str(path), (), str(path.parent), "ok", 0, None)
        reader = Reader(script) if window is None else Reader(script, window)
        reader.read(unpack(BytesIO(warm.journal(path))))
        return reader.trace()

    return run


def rows_of(trace: Trace) -> tuple[ModuleRow, ...]:
    return module_rows(trace, names_of(trace))


def test_a_training_loop(run: Run) -> None:
    trace = run(NET + SGD + looped(ROUND, 3))
    made = sum(total.count for total in trace.totals)
    assert run_summary(trace) == RunSummary(made, 3, 1, 3, 4, 4, 0, 0, ())
    assert rows_of(trace) == (ModuleRow("net", 4, 4, 4, 4, (4, 4)),)


def test_a_program_without_training(run: Run) -> None:
    summary = run_summary(run("a = torch.ones(3)\nb = a * 2\n"))
    assert summary == RunSummary(2, 0, 0, 0, 0, 0, 0, 0, ())


def test_a_parameter_without_a_path_to_the_loss_was_never_trained(run: Run) -> None:
    text = NET + "unused = torch.nn.Linear(2, 2)\nboth = torch.nn.ModuleList([net, unused])\n"
    text += "opt = torch.optim.SGD(both.parameters(), lr=0.1)\n" + looped(ROUND, 2)
    trace = run(text)
    summary = run_summary(trace)
    assert (summary.parameters, summary.trained, summary.never, summary.frozen) == (6, 4, 2, 0)
    assert summary.untrained == ("unused.weight", "unused.bias")
    assert [(row.name, row.parameters, row.with_gradient, row.changed) for row in rows_of(trace)] == [
        ("net", 4, 4, 4),
        ("unused", 2, 0, 0),
    ]


def test_frozen_parameters_that_an_optimizer_holds(run: Run) -> None:
    trace = run(NET + "net[0].requires_grad_(False)\n" + SGD + looped(ROUND, 2))
    summary = run_summary(trace)
    assert (summary.parameters, summary.trained, summary.never, summary.frozen) == (4, 2, 2, 2)
    assert summary.untrained == ("net[0].weight", "net[0].bias")
    (row,) = rows_of(trace)
    assert (row.require_grad, row.with_gradient, row.changed) == (2, 2, 2)


def test_untrained_parameters_that_required_grad_come_before_frozen_ones(run: Run) -> None:
    held = "held = torch.nn.Linear(1, 1)\nheld.weight.requires_grad_(False)\n"
    trace = run(NET + held + "opt = torch.optim.SGD([*held.parameters(), *net.parameters()], lr=0.1)\n" + ROUND)
    assert run_summary(trace).untrained == ("held.bias", "held.weight")


def test_a_gradient_that_is_cleared_before_each_step_was_had_and_not_used(run: Run) -> None:
    summary = run_summary(run(NET + SGD + "net(x).sum().backward()\nopt.zero_grad()\nopt.step()\n"))
    assert (summary.parameters, summary.trained, summary.never) == (4, 0, 0)
    assert len(summary.untrained) == 4


def test_tied_weights_count_once(run: Run) -> None:
    text = "net = torch.nn.Module()\nnet.a = torch.nn.Linear(3, 3, bias=False)\nnet.b = torch.nn.Linear(3, 3)\n"
    text += "net.b.weight = net.a.weight\nx = torch.ones(2, 3)\n" + SGD
    text += "net.b(net.a(x)).sum().backward()\nopt.step()\n"
    trace = run(text)
    assert run_summary(trace).parameters == run_summary(trace).trained == 2
    assert [row.parameters for row in rows_of(trace)] == [2]


def test_a_parameter_in_two_optimizers_counts_once(run: Run) -> None:
    trace = run(NET + SGD + "other = torch.optim.Adam(net[2].parameters())\n" + looped(ROUND + "other.step()\n", 2))
    summary = run_summary(trace)
    assert (summary.optimizers, summary.optimizer_steps, summary.parameters, summary.trained) == (2, 4, 4, 4)


def test_an_optimizer_that_never_steps_holds_no_parameters_that_count(run: Run) -> None:
    summary = run_summary(run(NET + SGD + "net(x).sum().backward()\n"))
    assert (summary.optimizers, summary.optimizer_steps, summary.parameters) == (1, 0, 0)


def test_a_step_with_a_closure(run: Run) -> None:
    closure = (
        "def closure():\n    opt.zero_grad()\n    loss = net(x).square().sum()\n    loss.backward()\n    return loss\n"
    )
    trace = run(NET + "opt = torch.optim.LBFGS(net.parameters(), max_iter=3)\n" + closure + "opt.step(closure)\n")
    summary = run_summary(trace)
    assert (summary.optimizer_steps, summary.trained) == (1, 4)
    assert rows_of(trace)[0].changed == 4


def test_a_closure_that_clears_the_gradients_again_leaves_open_what_was_trained(run: Run) -> None:
    text = """
class Own(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            closure()
        for group in self.param_groups:
            for p in group["params"]:
                p -= p.grad
                p.grad = None
opt = Own(net.parameters())
opt.step(lambda: net(x).sum().backward())
"""
    summary = run_summary(run(NET + text))
    assert (summary.parameters, summary.trained, summary.never) == (4, None, 0)


def test_a_closure_that_raises_leaves_open_what_was_stepped(run: Run) -> None:
    text = "opt = torch.optim.LBFGS(net.parameters())\ndef closure():\n    torch.ones(2).sum()\n    raise ValueError\n"
    summary = run_summary(run(NET + text + "try:\n    opt.step(closure)\nexcept ValueError:\n    pass\n"))
    assert (summary.parameters, summary.trained) == (None, None)


def test_a_step_that_the_scaler_skips_trains_nothing(run: Run) -> None:
    scaled = "scaler = torch.amp.GradScaler('cpu')\nscaler.scale((net(x) * float('inf')).sum()).backward()\n"
    trace = run(NET + SGD + scaled + "scaler.step(opt)\nscaler.update()\n")
    summary = run_summary(trace)
    assert (summary.optimizer_steps, summary.trained) == (0, 0)
    assert rows_of(trace)[0].changed == 0


def test_a_fused_step_may_skip_its_update(run: Run) -> None:
    fused = "opt = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)\nscaler = torch.amp.GradScaler('cpu')\n"
    scaled = "scaler.scale((net(x) * float('inf')).sum()).backward()\nscaler.step(opt)\nscaler.update()\n"
    trace = run(NET + fused + scaled)
    assert run_summary(trace).trained is None
    assert rows_of(trace)[0].changed is None


def test_a_fused_step_changes_parameters(run: Run) -> None:
    trace = run(NET + "opt = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)\n" + ROUND)
    assert run_summary(trace).trained == rows_of(trace)[0].changed == 4


def test_an_optimizer_of_the_program_may_change_parameters_without_a_version(run: Run) -> None:
    text = """
class Own(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    def step(self):
        for p in self.param_groups[0]["params"]:
            CHANGE
opt = Own(net.parameters())
"""
    for change in ("p.data = p.data - p.grad", "p.data.sub_(p.grad)", "p.detach().sub_(p.grad)"):
        trace = run(NET + text.replace("CHANGE", change) + ROUND)
        assert (run_summary(trace).trained, rows_of(trace)[0].changed) == (4, 4), change
    trace = run(NET + text.replace("CHANGE", "pass") + ROUND)
    assert rows_of(trace)[0].changed is None  # it found gradients: not seen whether it used them


def test_a_reentrant_checkpoint_runs_no_pass_of_its_own(run: Run) -> None:
    text = "from torch.utils.checkpoint import checkpoint\nx.requires_grad_()\n"
    text += "checkpoint(net, x, use_reentrant=True).sum().backward()\nnet(x).sum().backward()\n"
    assert run_summary(run(NET + text)).backward_passes == 2


def test_every_way_to_run_a_backward_pass_counts(run: Run) -> None:
    text = "torch.autograd.grad(net(x).sum(), net.parameters())\ntorch.autograd.backward(net(x).sum())\n"
    assert run_summary(run(NET + text + "net(x).sum().backward()\n")).backward_passes == 3


@pytest.mark.parametrize("way", ["net(x).sum().backward()", "torch.autograd.grad(net(x).sum(), net.parameters())"])
def test_a_long_run_counts_passes_and_steps_that_it_no_longer_has(run: Run, way: str) -> None:
    trace = run(NET + SGD + looped(f"{way}\nopt.step()\n", 300), window=40)
    assert not is_complete(trace)
    summary = run_summary(trace)
    assert (summary.backward_passes, summary.optimizers, summary.optimizer_steps) == (300, 1, 300)
    assert (summary.parameters, summary.trained) == (4, 4 if "backward" in way else 0)
    assert summary.never == (0 if "backward" in way else None)


def test_a_long_run_leaves_open_whether_a_frozen_parameter_had_a_gradient_once(run: Run) -> None:
    trace = run(NET + "net[0].requires_grad_(False)\n" + SGD + looped(ROUND, 300), window=40)
    summary = run_summary(trace)
    assert not is_complete(trace)
    assert (summary.trained, summary.never, summary.frozen) == (2, None, None)
    (row,) = rows_of(trace)
    assert (row.require_grad, row.with_gradient) == (2, None)


def test_more_steps_than_are_noted_are_not_counted(run: Run) -> None:
    many = "ps = [torch.nn.Parameter(torch.ones(1)) for _ in range(500)]\nopt = torch.optim.SGD(ps, lr=0.1)\n"
    late = "late = torch.nn.Parameter(torch.ones(1))\nlast = torch.optim.SGD([late], lr=0.1)\nlast.step()\n"
    summary = run_summary(run(many + looped("ps[0].sum().backward()\nopt.step()\n", 60) + late))
    assert (summary.optimizer_steps, summary.parameters, summary.trained) == (None, 501, 1)


def test_a_step_of_an_optimizer_that_nothing_recorded_as_made_leaves_their_number_open(run: Run) -> None:
    trace = run(NET + SGD + ROUND)
    events = tuple(event for event in trace.events if getattr(event, "op", "") != "optim.SGD")
    summary = run_summary(replace(trace, events=events, totals=()))
    assert (summary.optimizers, summary.optimizer_steps) == (None, 1)


def test_replaced_parameters_show_the_last_ones(run: Run) -> None:
    text = "def main():\n    for fold in range(3):\n        model = torch.nn.Linear(3, 1)\n"
    text += "        opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    text += "        model(torch.ones(2, 3)).sum().backward()\n        opt.step()\nmain()\n"
    trace = run(text)
    assert run_summary(trace).trained == 6
    assert [(row.name, row.parameters, row.changed) for row in rows_of(trace)] == [("model", 2, 2)]


def test_the_parts_of_a_large_module_have_rows_of_their_own(run: Run) -> None:
    text = "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += "        self.encoder = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(4)))\n"
    text += "        self.head = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(3)))\n"
    text += "        self.scale = torch.nn.Parameter(torch.ones(1))\nmodel = Net()\nother = torch.nn.Linear(1, 1)\n"
    rows = {row.name: row.parameters for row in rows_of(run(text))}
    assert rows == {"model": 1, "model.encoder": 8, "model.head": 6, "other": 2}


def test_a_stack_of_many_layers_has_one_row(run: Run) -> None:
    text = f"net = torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range({FEW + MAX_ROWS})))\n"
    assert [(row.name, row.parameters) for row in rows_of(run(text))] == [("net", 2 * (FEW + MAX_ROWS))]


def test_plain_tensors_that_an_optimizer_holds_have_rows(run: Run) -> None:
    text = "w = torch.ones(3, requires_grad=True)\nb = torch.zeros(1, requires_grad=True)\n"
    text += "opt = torch.optim.SGD([w, b], lr=0.1)\n(w.sum() + b).sum().backward()\nopt.step()\n"
    assert [row.name for row in rows_of(run(text))] == ["w", "b"]


def test_a_loop_variable_is_no_row(run: Run) -> None:
    text = "def main(net):\n    for p in net.parameters():\n        p.requires_grad_(False)\n"
    rows = rows_of(run(NET + text + "main(net)\n"))
    assert [(row.name, row.require_grad) for row in rows] == [("net", 0)]


def test_a_list_of_parameters_is_not_the_name_of_a_module(run: Run) -> None:
    rows = rows_of(run(NET + "params = list(net.parameters())\n"))
    assert [(row.name, row.parameters) for row in rows] == [("net", 4)]
