"""Compares the rows that C writes of a whole training step with those of Python: gradients, steps, `zero_grad`, and the
functions of PyTorch in Python (`tensorlens/tracer/recording/_fast_path.c`)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
import torch
from support.plain_rows import plain_rows
from torch import nn
from torch.nn import functional as F

from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.patches import backward
from tensorlens.tracer.patches.python_functions import PATCHES
from tensorlens.tracer.patches.table import installed
from tensorlens.tracer.recording import compiled

FastPath = compiled.FastPath
pytestmark = pytest.mark.skipif(FastPath is None, reason="not built from this source: python hatch_build.py")


def rows_of(program: Callable[[], object], fast_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records a program with all patches, in a thread of its own, where the sequence numbers start at 0."""
    rows: list[Any] = []
    raised: list[BaseException] = []
    monkeypatch.setattr(compiled, "FastPath", fast_path)
    monkeypatch.setattr(backward, "_tokens", count())

    def run() -> None:
        torch.manual_seed(0)
        recorder = new_recorder((__file__,))
        try:
            with installed(recorder), recorder:
                program()
        except BaseException as error:  # pytest would not see it in another thread
            raised.append(error)
        recorder.close()
        rows.extend(plain_rows(recorder.rows))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return rows


def _train(make: Callable[..., torch.optim.Optimizer], set_to_none: bool = True) -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    optimizer = make(model.parameters())
    inputs, targets = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
    for _ in range(3):
        optimizer.zero_grad(set_to_none)
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    model.zero_grad()


def sgd() -> None:
    _train(lambda parameters: torch.optim.SGD(parameters, lr=0.1))


def gradients_that_are_kept() -> None:
    _train(lambda parameters: torch.optim.Adam(parameters, lr=0.1), set_to_none=False)


def parameters_without_a_gradient() -> None:
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(9, dtype=torch.float64))
    optimizer = torch.optim.SGD([used, unused, *nn.Linear(2, 2).parameters()], lr=0.1, weight_decay=0.1)
    used.sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def a_sparse_gradient() -> None:
    table = nn.Embedding(5, 3, sparse=True)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        table(torch.tensor([1, 2])).sum().backward()
        optimizer.step()


def parameters_that_share_memory() -> None:
    whole = torch.ones(4)
    first, second = nn.Parameter(whole[:2]), nn.Parameter(whole.detach())
    optimizer = torch.optim.SGD([first, second], lr=0.1)
    (first.sum() + second.sum()).backward()
    optimizer.step()


def gradients_that_grow() -> None:
    small, large = torch.ones(2, requires_grad=True), torch.ones(3, 4, requires_grad=True)
    inner = large * 2
    inner.retain_grad()
    loss = inner.sum() * small.sum()
    for _ in range(3):
        loss.backward(retain_graph=True)
    small.grad = None
    assert large.grad is not None
    large.grad.mul_(2)
    loss.backward(inputs=[large])


def gradients_of_dead_leaves() -> None:
    for size in (2, 20):
        leaf = torch.ones(size, requires_grad=True)
        leaf.sum().backward()


def gradients_that_a_pass_takes_away() -> None:
    taken, kept = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (taken.sum() + kept.sum()).backward()
    kept.register_hook(lambda gradient: setattr(taken, "grad", None))
    for _ in range(2):
        (kept * 2).sum().backward()


def aliases() -> None:
    parameter, follower = nn.Parameter(torch.ones(4, 3)), nn.Parameter(torch.ones(4, 3))
    kept = []
    for _ in range(3):
        follower.data.mul_(0.9).add_(parameter.data, alpha=0.1)
        parameter[1:].data.add_(1)  # not at the beginning of the storage
        kept.append(parameter.data.data)
        with torch.no_grad():
            follower.data.view(12)[0] = 2
        with torch.inference_mode():
            follower.data.sum()
            torch.ones(2).data.sum()
        (parameter * follower).sum().backward()
        torch.ones(3).to_sparse().data.sum()
    del kept[1]
    parameter.data.add_(1)


def leaves_and_their_gradients() -> None:
    leaves = [torch.ones(3, requires_grad=True), torch.zeros(2, 2, requires_grad=True), torch.rand(3)]
    assert leaves[0].grad is None
    table = nn.Embedding(5, 3, sparse=True)
    for _ in range(3):
        leaves[2] = torch.zeros_like(leaves[2], requires_grad=True)
        with torch.no_grad():
            leaves[1] = torch.ones_like(leaves[1], requires_grad=True)
        (leaves[0].sum() + leaves[1].sum() + leaves[2].sum()).backward()
        table(torch.tensor([1, 2])).sum().backward()
        with torch.inference_mode():
            leaves[0].grad.sum()  # type: ignore[attr-defined]
        with torch.no_grad():
            for leaf in [*leaves, table.weight]:
                leaf -= 0.1 * leaf.grad  # type: ignore[operator]  # noqa: PLW2901
        (leaves[0] ** 3).sum().backward(create_graph=True)
        leaves[0].grad * 2  # type: ignore[operator]


def a_subclass() -> None:
    class Own(torch.Tensor):
        pass

    leaf = torch.ones(3).as_subclass(Own).requires_grad_()
    for _ in range(2):
        (leaf * 2).sum().backward()


def functions_in_python() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    F.relu(x)
    F.softmax(x, dim=1)
    F.dropout(x, 0.5)
    torch.einsum("ij,kj->ik", x, x)
    (1 - x).norm()
    x.split(1)
    with suppress(TypeError):
        "a" - x  # type: ignore[operator]
    with suppress(ValueError):
        F.dropout(x, 2.0)


def batch_norm_in_every_mode() -> None:
    norm, data = nn.BatchNorm1d(3), torch.randn(5, 3)
    for _ in range(3):
        norm.train()
        norm(data.clone().requires_grad_()).sum().backward()
        norm.eval()
        norm(data)
        with torch.no_grad():
            norm(data)
        with torch.inference_mode():
            norm(data)
        held = norm(data.clone().requires_grad_()).sum()
        norm.train()
        norm(data)  # changes what `held` has saved
        held.backward()
    nn.BatchNorm1d(3, track_running_stats=False)(data)
    F.batch_norm(data, torch.zeros(3), torch.ones(3), None, None, True)
    F.batch_norm(data, None, None, training=True).mul_(2)
    norm.running_mean.data.add_(1)  # type: ignore[union-attr]
    norm(data.clone().requires_grad_()).sum().backward()
    for wrong in (torch.ones(1, 3), torch.ones(4, 2)):
        with suppress(ValueError, RuntimeError):
            norm(wrong)


def a_step_that_fails() -> None:
    parameter = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2)), parameter], lr=0.1)
    parameter.sum().backward()
    optimizer.param_groups[0]["lr"] = "fast"
    with suppress(TypeError):
        optimizer.step()
    optimizer.zero_grad()


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize(
    "program",
    [
        sgd, gradients_that_are_kept, parameters_without_a_gradient, a_sparse_gradient, parameters_that_share_memory,
        gradients_that_grow, gradients_of_dead_leaves, gradients_that_a_pass_takes_away, aliases,
        leaves_and_their_gradients, a_subclass, functions_in_python, a_step_that_fails, batch_norm_in_every_mode,
    ],
    ids=lambda program: program.__name__,
)  # fmt: skip
def test_rows_are_those_of_python(program: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = rows_of(program, None, monkeypatch)
    assert expected
    assert rows_of(program, FastPath, monkeypatch) == expected


def _relu(x: torch.Tensor) -> torch.Tensor:
    return F.relu(x)


def test_a_python_function_of_pytorch_goes_to_the_mode_in_c() -> None:
    recorder = new_recorder()
    frames: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            frames.append(frame.f_code.co_name)

    with installed(recorder), recorder:
        x = torch.ones(2)
        for _ in range(3):  # the first calls are looked up
            frames.clear()
            sys.setprofile(note)
            _relu(x)
            sys.setprofile(None)
    recorder.close()
    assert frames == ["_relu", "relu", "__torch_function__", "relu"]


def test_pytorchs_functions_are_back_afterwards() -> None:
    recorder = new_recorder()
    with installed(recorder), recorder:
        replaced = [vars(patch.owner)[patch.name] for patch in PATCHES]
    recorder.close()
    assert all(function is not torch.overrides.handle_torch_function for function in replaced)
    assert all(vars(patch.owner)[patch.name] is torch.overrides.handle_torch_function for patch in PATCHES)


def test_arguments_of_another_kind_are_refused() -> None:
    recorder = new_recorder()
    in_c: Any = recorder.tensor_ids.in_c
    for call in (in_c.gradients, in_c.changes, in_c.stepped, in_c.dropped, in_c.with_gradient, in_c.new):
        with pytest.raises(TypeError):
            call(1)
    with pytest.raises(TypeError):
        in_c.before(1)
    recorder.close()
