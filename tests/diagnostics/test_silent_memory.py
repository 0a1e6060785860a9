"""Memory that changed past its version counter: found with its lines where a backward pass used it, else left alone."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch
from support.silent import Run, expect, expect_nothing, run  # noqa: F401

import tensorlens
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors import stale
from tensorlens.tracer.saved_tensors.service import SavedTensors
from tensorlens.tracer.saved_tensors.watched_storage import Memory

CODE = "unversioned-write-to-saved-tensor"

WAYS = {
    "a slice of .data": """
        import torch
        x = torch.ones(4, requires_grad=True)
        h = x * 1
        loss = (h * h).sum()  # saved_here
        h.data[1:3] = 7.0  # modified_here
        loss.backward()  # needed_here
        """,
    "an array kept for later": """
        import torch
        x = torch.ones(3, requires_grad=True)
        h = x * 1
        array = h.detach().numpy()  # shared_here
        loss = (h * h).sum()  # saved_here
        print("on the way")
        array += 1  # modified_here
        loss.backward()  # needed_here
        """,
    "a function that fills a batch": """
        import numpy as np, torch

        def refill(target):
            target[:] = 5  # modified_here

        batch = np.ones(3, dtype=np.float32)
        inputs = torch.from_numpy(batch)  # shared_here
        w = torch.ones(3, requires_grad=True)
        loss = (w * inputs).sum()  # saved_here
        refill(batch)
        loss.backward()  # needed_here
        """,
    "a method that moves its state": """
        import numpy as np, torch

        class Environment:
            def __init__(self):
                self.state = np.zeros(3, dtype=np.float32)

            def step(self):
                self.state[0] += 1.0  # modified_here
                return self.state

        environment, w = Environment(), torch.ones(3, requires_grad=True)
        seen = []
        for step in range(2):
            batch = torch.from_numpy(environment.state)  # shared_here
            seen.append((w * batch).sum())  # saved_here
            environment.step()
        torch.stack(seen).sum().backward()  # needed_here
        """,
    "as_tensor": """
        import numpy as np, torch
        batch = np.ones(3)
        inputs = torch.as_tensor(batch)  # shared_here
        w = torch.ones(3, requires_grad=True, dtype=torch.float64)
        for step in range(3):
            loss = (w * inputs).sum()  # saved_here
            np.multiply(batch, 2, out=batch)  # modified_here
            loss.backward()  # needed_here
        """,
    "a capsule": """
        import torch
        from torch.utils import dlpack
        x = torch.ones(3, requires_grad=True)
        h = (x * 1).sigmoid()  # saved_here
        alias = dlpack.from_dlpack(dlpack.to_dlpack(h.detach()))  # shared_here
        alias.mul_(2)  # modified_here
        h.sum().backward()  # needed_here
        """,
    "a storage that is filled": """
        import torch
        pool = torch.ones(8)
        w = torch.ones(4, requires_grad=True)
        loss = (w * pool[:4]).sum()  # saved_here
        pool.untyped_storage().fill_(0)  # modified_here
        print("on the way")
        loss.backward()  # needed_here
        """,
    "a memoryview of an array": """
        import numpy as np, torch
        buffer = np.zeros(4, dtype=np.float32)
        window = memoryview(buffer).cast("B").cast("f")
        batch = torch.from_numpy(buffer)  # shared_here
        w = torch.ones(4, requires_grad=True)
        for step in range(2):
            window[0] = step + 1.0
            loss = (batch * w).exp().sum()  # saved_here
            window[0] = 0.0  # modified_here
            loss.backward()  # needed_here
        """,
    "an array that is changed and then lost": """
        import numpy as np, torch
        batch = np.ones(3)
        inputs = torch.from_numpy(batch)  # shared_here
        w = torch.ones(3, requires_grad=True, dtype=torch.float64)
        loss = (w * inputs).sum()  # saved_here
        batch[0] = 5  # modified_here
        del batch
        for step in range(3):
            w * inputs
        loss.backward()  # needed_here
        """,
    "a view of an array that is lost": """
        import numpy as np, torch
        batch = np.ones((2, 3))
        row = batch[1]
        inputs = torch.from_numpy(batch)  # shared_here
        del batch
        w = torch.ones(3, requires_grad=True, dtype=torch.float64)
        for step in range(3):
            loss = (w * inputs).sum()  # saved_here
            row += 1  # modified_here
            loss.backward()  # needed_here
        """,
    "a memoryview of an array that is lost": """
        import numpy as np, torch
        buffer = np.zeros(4, dtype=np.float32)
        batch, window = torch.as_tensor(buffer), memoryview(buffer)  # shared_here
        del buffer
        w = torch.ones(4, requires_grad=True)
        for step in range(2):
            loss = (batch * w).exp().sum()  # saved_here
            window[0] = step + 1.0  # modified_here
            loss.backward()  # needed_here
        """,
    "DLPack": """
        import torch
        x = torch.ones(3, requires_grad=True)
        h = x * 1
        alias = torch.from_dlpack(h.detach())  # shared_here
        loss = (h * h).sum()  # saved_here
        alias.zero_()  # modified_here
        loss.backward()  # needed_here
        """,
    "a fused optimizer": """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5, fused=True)
        loss = net(torch.ones(1, 2)).sum()  # saved_here
        loss.backward(retain_graph=True)
        optimizer.step()  # modified_here
        optimizer.zero_grad()
        loss.backward()  # needed_here
        """,
    "an attribute of ctx, through .data": """
        import torch

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = x
                return x * x

            @staticmethod
            def backward(ctx, g):
                return 2 * ctx.x * g

        w = torch.ones(3, requires_grad=True)
        h = w * 1
        loss = Square.apply(h).sum()  # saved_here
        h.data.mul_(10)  # modified_here
        loss.backward()  # needed_here
        """,
    "statistics moved after a pass that normalised with them": """
        import torch
        norm = torch.nn.BatchNorm1d(2)
        norm.train(False)
        x = torch.randn(4, 2)
        steady = norm(x)  # saved_here
        norm.train()
        moving = norm(x + 1)  # modified_here
        (steady - moving).square().sum().backward()  # needed_here
        """,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_write_past_the_version_is_found(way: str, run: Run) -> None:  # noqa: F811
    found = expect(run, CODE, WAYS[way])
    assert found.fixes
    assert "so its check of kept values passes" in found.explanation


def test_the_values_then_and_now_are_told(run: Run) -> None:  # noqa: F811
    found = expect(run, CODE, WAYS["a slice of .data"])
    assert found.evidence["before"] == "[1, 1, 1, 1]"
    assert found.evidence["after"] == "[1, 7, 7, 1]"


WAYS |= {
    "an alias that is saved, and the tensor written": """
        import torch
        p = torch.ones(3)
        w = torch.ones(3, requires_grad=True)
        alias = p.data  # shared_here
        loss = (w * alias).sum()  # saved_here
        print("on the way")
        p.add_(1)  # modified_here
        loss.backward()  # needed_here
        """,
    "a result that is saved, through an alias made later": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = (w * 1).sigmoid()  # saved_here
        other = torch.ones(3).exp()
        h.data.mul_(2)  # modified_here
        other.add_(1)
        h.sum().backward()  # needed_here
        """,
    "an array of an activation, between two other calls": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = (w * 1).sigmoid()  # saved_here
        array = h.detach().numpy()  # shared_here
        seen = []
        other = w * 2
        seen[:] = [1]
        other = other + 1
        array[0] = 7  # modified_here
        other = other + 1
        seen[0] = 2
        (h + other).sum().backward()  # needed_here
        """,
    "an array saved by the second of two passes": """
        import numpy as np, torch
        array = np.ones(3, dtype=np.float32)
        batch = torch.from_numpy(array)  # shared_here
        w = torch.ones(3, requires_grad=True)
        (w * batch).sum().backward()
        array[:] = 2
        loss = (w * batch).sum()  # saved_here
        array[:] = 3  # modified_here
        print("on the way")
        loss.backward()  # needed_here
        """,
}

HARMLESS = {
    "after backward": """
        import torch
        x = torch.ones(3, requires_grad=True)
        for step in range(3):
            loss = (x * x).sum()
            loss.backward()
            x.data -= 0.1 * x.grad
            x.grad = None
        """,
    "another part of the memory": """
        import torch
        w = torch.ones(2, requires_grad=True)
        buffer = torch.ones(6)
        loss = (w * buffer[:2]).sum()
        buffer.data[2:] = 5.0
        loss.backward()
        """,
    "other memory under a parameter, whose view keeps the old": """
        import torch
        layer = torch.nn.Linear(2, 1)
        other = torch.full((1, 2), 7.0)
        x = torch.ones(1, 2, requires_grad=True)
        loss = layer(x).sum()
        layer.weight.data = other
        loss.backward()
        assert not (x.grad == 7.0).any()
        """,
    "other memory under a parameter, and its own again": """
        import torch
        w = torch.nn.Parameter(torch.ones(2))
        x = torch.ones(2, requires_grad=True)
        average = torch.full((2,), 5.0)
        for step in range(3):
            loss = (w * x).sum()
            w.data, average = average, w.data
            w.data, average = average, w.data
            loss.backward()
        assert (x.grad == 3.0).all()
        """,
    "changed and put back": """
        import torch
        x = torch.ones(3, requires_grad=True)
        loss = (x * x).sum()
        x.data[0] += 0.25
        probe = (x.detach() ** 2).sum()
        x.data[0] -= 0.25
        loss.backward()
        """,
    "the same values": """
        import torch
        x = torch.ones(3, requires_grad=True)
        loss = (x * x).sum()
        x.data.clamp_(-5, 5)
        x.data = x.data.clone()
        loss.backward()
        """,
    "an array that is filled anew for each step": """
        import numpy as np, torch
        rng = np.random.default_rng(0)
        buffer = np.zeros((5, 4), dtype=np.float32)
        batch = torch.from_numpy(buffer)
        net = torch.nn.Linear(4, 2)
        for step in range(3):
            buffer[:] = rng.normal(size=(5, 4))
            net(batch).pow(2).mean().backward()
            net.zero_grad()
        """,
    "an array of data for the next step": """
        import numpy as np, torch
        batch = np.ones(3, dtype=np.float32)
        w = torch.ones(3, requires_grad=True)
        for step in range(3):
            loss = (w * torch.from_numpy(batch)).sum()
            loss.backward()
            batch *= 2
        """,
    "an array that is read only": """
        import torch
        x = torch.ones(3, requires_grad=True)
        h = x * 1
        shown = h.detach().numpy()
        loss = (h * h).sum()
        print(shown.sum(), shown.copy() + 1)
        loss.backward()
        """,
    "what was not saved": """
        import torch
        x = torch.ones(3, requires_grad=True)
        h = x * 2
        loss = h.sum()
        x.data.zero_()
        loss.backward()
        """,
    "weights averaged between steps": """
        import torch
        net, average = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            loss = (net(torch.ones(4, 2)) - average(torch.ones(4, 2)).detach()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for a, p in zip(average.parameters(), net.parameters()):
                a.data.mul_(0.9).add_(p.data, alpha=0.1)
        """,
    "statistics moved by two passes of training": """
        import torch
        norm = torch.nn.BatchNorm1d(2)
        x = torch.randn(4, 2)
        with torch.no_grad():
            norm.eval()(x)
        norm.train()
        (norm(x) - norm(x + 1)).square().sum().backward()
        """,
    "statistics moved after the backward pass that needed them": """
        import torch
        norm = torch.nn.BatchNorm1d(2)
        x = torch.randn(4, 2)
        for step in range(2):
            norm.eval()(x).square().sum().backward()
            norm.train()(x).square().sum().backward()
            norm.zero_grad()
        """,
    "statistics read while none is moved": """
        import torch
        norm = torch.nn.BatchNorm1d(2, momentum=0.0)
        x = torch.randn(4, 2)
        steady = norm.eval()(x)
        (steady - norm.train()(x)).square().sum().backward()
        """,
}


@pytest.mark.parametrize("program", HARMLESS)
def test_a_write_that_no_backward_meets_is_no_finding(program: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, HARMLESS[program])


CTX = """
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x{kept}
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.x * g

    w = torch.ones(3, requires_grad=True)
    h = w * 1
    loss = Square.apply(h).sum()
    h.mul_(10){changed}
    loss.backward(){used}
    """


def test_a_tensor_kept_on_ctx_is_followed(run: Run) -> None:  # noqa: F811
    text = CTX.format(kept="  # saved_here", changed="  # modified_here", used="  # needed_here")
    found = expect(run, "ctx-attribute-bypasses-version-check", text)
    assert found.evidence["slot"] == "ctx.x"


def test_a_copy_kept_on_ctx_is_safe(run: Run) -> None:  # noqa: F811
    expect_nothing(run, CTX.format(kept=".clone()", changed="", used=""))


def test_without_a_way_past_the_version_nothing_is_watched_or_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("a run without such a way must not come here")

    monkeypatch.setattr(stale, "nodes_of", refuse)
    monkeypatch.setattr("tensorlens.tracer.saved_tensors.memory_watch.place_of", refuse)
    monkeypatch.setattr("tensorlens.tracer.saved_tensors.memory_watch.WatchedStorage", refuse)
    monkeypatch.setattr("tensorlens.tracer.saved_tensors.memory_watch.MemoryWatcher.is_watched", refuse)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net.parameters())
    session = tensorlens.trace()
    with session:
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(torch.randn(5, 4)), torch.tensor([0, 1, 0, 1, 1])).backward()
            optimizer.step()
    assert not [event for event in session.trace().events if "could not" in getattr(event, "reason", "")]


def test_watching_ends_with_the_memory() -> None:
    session = tensorlens.trace()
    with session:
        h = torch.ones(3)
        h.data.add_(1)
        recorder = session._recorder
        assert recorder is not None
        assert recorder.watched
        del h
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
        assert not recorder.watched
        assert "finish" not in vars(recorder)


def test_watching_ends_when_one_counter_sees_every_write_again() -> None:
    session = tensorlens.trace()
    with session:
        h = torch.ones(3)
        h.data.add_(1)
        recorder = session._recorder
        assert recorder is not None
        assert recorder.watched
        h * torch.ones(3, requires_grad=True)
        assert not recorder.watched


def test_calls_stay_on_the_fast_path_while_memory_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    long: list[str] = []
    finish = Recorder.finish

    def counted(self: Recorder, called: Any, *rest: Any) -> None:
        long.append((called[1] or called[0].__name__).rpartition(".")[2])
        finish(self, called, *rest)

    monkeypatch.setattr(Recorder, "finish", counted)
    net, average = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    array = numpy.ones((2, 4), dtype=numpy.float32)
    session = tensorlens.trace()
    with session:
        for _ in range(20):
            loss = net(torch.from_numpy(array)).relu().exp().log().mul(2).sum()  # the array is saved from here on
            loss.backward()
            for mine, theirs in zip(average.parameters(), net.parameters(), strict=True):
                mine.data.mul_(0.9).add_(theirs.data, alpha=0.1)
    assert set(long[len(long) // 2 :]) <= {"__get__", "from_numpy", "linear"}


def test_an_array_that_only_its_tensor_keeps_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    long: list[str] = []
    finish = Recorder.finish

    def counted(self: Recorder, called: Any, *rest: Any) -> None:
        long.append((called[1] or called[0].__name__).rpartition(".")[2])
        finish(self, called, *rest)

    monkeypatch.setattr(Recorder, "finish", counted)
    w, session = torch.ones(4, requires_grad=True), tensorlens.trace()
    with session:
        recorder = session._recorder
        assert recorder is not None
        for n in range(20):
            batch = torch.as_tensor(numpy.ones((2, 4), dtype=numpy.float32))
            (w * batch).sum().backward()
            assert not recorder.watched
            assert n < 10 or not long
            long.clear()
        kept = numpy.ones((2, 4), dtype=numpy.float32)
        (w * torch.as_tensor(kept)).sum()
        assert recorder.watched


def test_arrays_that_a_program_keeps_are_not_compared_where_nothing_saved_them() -> None:
    kept, session = [], tensorlens.trace()
    with session:
        recorder = session._recorder
        assert recorder is not None
        for _ in range(300):
            with torch.no_grad():
                kept.append((torch.ones(1, 2) * 2).squeeze(0).numpy())
        assert isinstance(recorder.saved_tensors, SavedTensors)
        assert not recorder.saved_tensors._memory._guards
        assert len(recorder.watched) < 200


def test_a_write_by_the_operation_that_saved_its_result_is_no_finding(run: Run) -> None:  # noqa: F811
    expect_nothing(
        run,
        """
        import torch
        x = torch.ones(3, requires_grad=True)
        h = x * 1
        alias = h.data
        h.exp_()
        h.sum().backward()
        print(alias, x.grad)
        """,
    )


def test_memory_that_is_gone_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Memory.read

    def checked(self: Memory) -> bytes | None:
        gone.extend([self] * (not self.is_there()))
        return read(self)

    gone: list[Memory] = []
    monkeypatch.setattr(Memory, "read", checked)
    weight = torch.ones(4, requires_grad=True)
    with tensorlens.trace():
        for _ in range(3):
            for _ in range(40):
                loss = (torch.from_numpy(numpy.ones(4, dtype=numpy.float32)) * weight).sum()
            loss.backward()
    assert not gone
