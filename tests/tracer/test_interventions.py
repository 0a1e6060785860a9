"""Each kind of intervention changes what the calls at its place do, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.warm import Warm
from support.warm_runs import Runs

from tensorlens.journal.child_config import ComparedRun
from tensorlens.runner.compared_runs import FinishedRun


def printed(run: FinishedRun) -> str:
    return run.printed.head.decode().strip()


def test_a_run_without_interventions_is_the_plain_run(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\nx = torch.ones(2, requires_grad=True)\n(x.detach() * 2).sum()\nprint(x._version)\n"
    )
    traced, _ = warm.traced(script)
    further, _ = warm.read(script, ComparedRun(7, False))
    assert traced == further


def test_keep_copies_keeps_what_one_call_saved(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        y = torch.sigmoid(x)
        y.mul_(3)
        y.sum().backward()
        print(x.grad)
    """)
    assert program.first().trace().script.outcome == "error"
    run = program.intervening("keep_copies", "torch.sigmoid(x)")
    assert run.trace().script.outcome == "ok"
    assert printed(run) == "tensor([0.5898, 0.5898])"  # 3 * s * (1 - s)


def test_keep_copies_leaves_other_calls_as_they_are(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        y = torch.sigmoid(x)
        z = torch.tanh(x)
        y.mul_(3)
        (y + z).sum().backward()
    """)
    assert program.intervening("keep_copies", "torch.tanh(x)").trace().script.outcome == "error"


def test_keep_copies_reaches_what_a_custom_function_keeps(runs: Runs) -> None:
    program = runs("""
        import torch

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                x, = ctx.saved_tensors
                return 2 * x * grad

        leaf = torch.ones(2, requires_grad=True)
        x = leaf * 2
        y = Square.apply(x)
        x.add_(5)
        y.sum().backward()
        print(leaf.grad)
    """)
    assert program.first().trace().script.outcome == "error"
    assert printed(program.intervening("keep_copies", "ctx.save_for_backward(x)")) == "tensor([8., 8.])"


def test_retain_graph_keeps_the_graph_of_one_pass(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        loss = (x * x).sum()
        loss.backward()
        loss.backward()
        print(x.grad)
    """)
    assert program.first().trace().script.outcome == "error"
    run = program.intervening("retain_graph", "loss.backward()")
    assert printed(run) == "tensor([4., 4.])"
    first, second = (event.retain_graph for event in run.trace().events if hasattr(event, "retain_graph"))
    assert (first, second) == (True, False)


@pytest.mark.parametrize(
    ("cut", "code"),
    [
        ("y = (x * 2).detach()", "(x * 2).detach()"),
        ("y = (x * 2).data", "(x * 2).data"),
        ("y = x * 2\ny.detach_()", "y.detach_()"),
        ("with torch.no_grad():\n    y = x * 2", "with torch.no_grad():\n    y = x * 2"),
        ("with torch.set_grad_enabled(False):\n    y = x * 2", "with torch.set_grad_enabled(False):\n    y = x * 2"),
        ("with torch.inference_mode():\n    y = x * 2", "with torch.inference_mode():\n    y = x * 2"),
        ("y = torch.as_tensor([*x.detach()]) * 2", "x.detach()"),
        ("x.requires_grad_(False)\ny = x * 2", "x.requires_grad_(False)"),
        ("x.requires_grad = False\ny = x * 2", "x.requires_grad"),
        ("y = torch.tensor(x) * 2", "torch.tensor(x)"),
        ("y = torch.utils.checkpoint.checkpoint(lambda a: a * x, torch.ones(2) * 2, use_reentrant=True)",
         "torch.utils.checkpoint.checkpoint(lambda a: a * x, torch.ones(2) * 2, use_reentrant=True)"),
    ],
)  # fmt: skip
def test_record_gradients_records_as_if_the_cut_were_not_there(runs: Runs, cut: str, code: str) -> None:
    program = runs("import torch, torch.utils.checkpoint\nx = torch.ones(2, requires_grad=True)\n"
                   + cut + "\nprint(y.requires_grad)\n")  # fmt: skip
    assert printed(program.first()) == "False"
    expected = "False" if "[*x" in cut else "True"  # `as_tensor` cuts, too
    assert printed(program.intervening("record_gradients", code)) == expected


def test_record_gradients_reaches_a_decorated_function(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)

        @torch.no_grad()
        def twice(x):
            return x * 2

        print(twice(x).requires_grad, torch.is_grad_enabled())
    """)
    assert printed(program.first()) == "False True"
    assert printed(program.intervening("record_gradients", "@torch.no_grad()")) == "True True"


@pytest.mark.parametrize(
    ("write", "code"),
    [
        ("x.add_(1)", "x.add_(1)"),
        ("x[0] = 7", "x[0]"),
        ("x += 1", "x += 1"),
        ("torch.nn.functional.relu(x, inplace=True)", "torch.nn.functional.relu(x, inplace=True)"),
        ("torch.neg(x, out=x)", "torch.neg(x, out=x)"),
        ("torch.nn.ReLU(inplace=True)(x)", "torch.nn.ReLU(inplace=True)(x)"),
        ("torch._foreach_add_([x], 1.0)", "torch._foreach_add_([x], 1.0)"),
    ],
)
def test_skip_write_keeps_the_values_and_the_version(runs: Runs, write: str, code: str) -> None:
    program = runs(f"import torch\nx = -torch.ones(2)\nkept = x\n{write}\nprint(kept.tolist(), kept._version)\n")
    assert printed(program.first()) != "[-1.0, -1.0] 0"
    assert printed(program.intervening("skip_write", code)) == "[-1.0, -1.0] 0"


@pytest.mark.parametrize("kind", ["SGD([p], lr=1.0)", "Adam([p], lr=1.0)", "AdamW([p], lr=1.0, foreach=True)"])
def test_skip_write_skips_an_optimizer_step(runs: Runs, kind: str) -> None:
    program = runs(f"""
        import torch
        p = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.{kind}
        for _ in range(2):
            p.sum().backward()
            optimizer.step()
        print(p.tolist(), p._version)
    """)
    assert printed(program.first()) != "[1.0, 1.0] 0"
    assert printed(program.intervening("skip_write", "optimizer.step()")) == "[1.0, 1.0] 0"


def test_skip_write_undoes_a_write_outside_torch(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        z = y * y
        array = y.detach().numpy()
        array += 5
        z.sum().backward()
        print(x.grad.tolist())
    """)
    assert printed(program.first()) == "[28.0, 28.0]"
    (overwrite,) = program.first().trace().inspection.overwrites
    assert printed(program.skipping(overwrite.sites[0])) == "[8.0, 8.0]"


def test_an_intervention_is_noted_when_it_is_made(runs: Runs) -> None:
    program = runs("import torch\nx = torch.ones(2)\nif x.sum() > 5:\n    x.neg()\n\ny = x.exp()\n")
    assert program.intervening("keep_copies", "x.exp()").trace().inspection.intervened
    assert [fact.number for fact in program.intervening("skip_write", "x.sum()").trace().inspection.intervened] == [0]
    assert not program.intervening("retain_graph", "x.exp()").trace().inspection.intervened


def test_an_intervention_reaches_a_thread(runs: Runs) -> None:
    program = runs("""
        import threading
        import torch
        x = torch.ones(2)

        def work():
            x.add_(1)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        print(x.tolist())
    """)
    assert printed(program.first()) == "[2.0, 2.0]"
    assert printed(program.intervening("skip_write", "x.add_(1)")) == "[1.0, 1.0]"


def test_an_intervention_reaches_a_call_during_backward(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: grad.mul_(10))
        (y * 1.0).sum().backward()
        print(x.grad.tolist())
    """)
    assert printed(program.first()) == "[20.0, 20.0]"
    run = program.intervening("skip_write", "grad.mul_(10)")
    assert run.trace().inspection.intervened
    assert printed(run) == "[20.0, 20.0]"  # the hook returns the result: the copy


def test_columns_count_characters(runs: Runs) -> None:
    program = runs("import torch\nx = torch.ones(2); é = 'ü'; x.add_(1)\nprint(x.tolist())\n")
    assert printed(program.intervening("skip_write", "x.add_(1)")) == "[1.0, 1.0]"
