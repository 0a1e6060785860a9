"""Checks that a recording leaves devices alone: it reads no tensor there, and keeps no memory there alive.

Where there is no GPU, `meta` and a pretended device take its place: nothing there can be read. The tests that need a
GPU are skipped then.
"""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from support.device_programs import PROGRAMS, Program
from support.recording import traced
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import tensorlens
from tensorlens.records.model import Backward
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.torch_features import ONLY_CPU

TRACER = Path(tensorlens.__file__).parent / "tracer"
TESTS = Path(__file__).parents[1]
ALIAS = "aten.detach.default"  # makes a tensor on the same memory: nothing runs on the device
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here: only a pretended one is tested")
needs_pretended = pytest.mark.skipif(
    not hasattr(torch._C, "_acc"), reason="this PyTorch takes no device that is written in Python"
)
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
pytestmark = pytest.mark.filterwarnings("ignore")


class Watching(TorchDispatchMode):
    """Counts the kernels that see a tensor which is not in main memory, and the storages alive after each."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels: Counter[str] = Counter()
        self.timeline: list[tuple[str, int]] = []
        self._storages: dict[int, StorageWeakRef] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tensors = [value for value in tree_leaves((args, kwargs, result)) if isinstance(value, torch.Tensor)]
        if str(func) != ALIAS and any(tensor.device.type != "cpu" for tensor in tensors):
            self.kernels[str(func)] += 1
            for tensor in tensors:
                ref = StorageWeakRef(tensor.untyped_storage())
                self._storages[ref.cdata] = ref
            self.timeline.append((str(func), self.alive()))
        return result

    def alive(self) -> int:
        """Counts the storages that are still alive."""
        self._storages = {key: ref for key, ref in self._storages.items() if not ref.expired()}
        return len(self._storages)


@pytest.fixture
def unmuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a dispatch mode see what the lens itself computes."""
    monkeypatch.setattr(MutedDispatch, "__enter__", lambda self: None)
    monkeypatch.setattr(MutedDispatch, "__exit__", lambda self, *exception: None)


@contextmanager
def without_collector() -> Iterator[None]:
    """Frees only what reference counts free, so that a reference cycle keeps its memory."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run(program: Program, recorded: bool) -> Watching:
    """Runs a program on `meta`. Its last entry is made after it, while it is still recorded."""
    watching = Watching()
    with without_collector(), tensorlens.trace() if recorded else nullcontext():
        with suppress(RuntimeError), watching:
            program("meta")
        watching.timeline.append(("end", watching.alive()))
    return watching


@every_program
def test_a_recording_runs_no_kernel_on_a_device(program: Program, unmuted: None) -> None:
    plain, recorded = run(program, False).kernels, run(program, True).kernels
    assert sum(plain.values())
    assert recorded == plain


@every_program
def test_memory_is_freed_as_early_as_in_a_plain_run(program: Program) -> None:
    run(program, False)  # what PyTorch loads at a first step keeps the step's frames, and so its tensors
    plain, recorded = run(program, False).timeline, run(program, True).timeline
    assert max(count for _, count in plain)
    assert recorded == plain


@needs_pretended
def test_a_recording_asks_a_device_for_nothing_even_after_it_failed() -> None:
    command = [sys.executable, "-m", "support.asked_of_a_device"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    asked = json.loads(done.stdout)
    assert len(asked) > len(PROGRAMS)
    for name, (plain, recorded) in asked.items():
        assert sum(plain[0].values()), name
        assert recorded == plain, name


def test_one_function_decides_what_may_be_read() -> None:
    deciding = {
        str(path.relative_to(TRACER))
        for path in TRACER.rglob("*.py")
        if re.search(r"device\.type|\.is_cuda|\.is_cpu", path.read_text(encoding="utf-8"))
    }
    assert deciding == {"isolation/readable.py"}


def test_a_recording_does_not_ask_which_devices_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch would start CUDA: a fork could not use it then, and `CUDA_VISIBLE_DEVICES` could not be set any more."""

    def started(*_: object) -> None:
        raise AssertionError

    for owner, name in (
        (torch.cuda, "is_available"),
        (torch.cuda, "device_count"),
        (torch.accelerator, "is_available"),
    ):
        monkeypatch.setattr(owner, name, started)
    traced(lambda: torch.ones(2, requires_grad=True).sum().backward())
    text = "\n".join(path.read_text(encoding="utf-8") for path in TRACER.rglob("*.py"))
    assert not re.search(r"(?<!distributed\.)is_available\(", text)
    assert isinstance(ONLY_CPU, bool)


def test_a_gradient_on_a_device_is_not_read_and_that_is_said() -> None:
    def program() -> None:
        x = torch.ones(2, device="meta", requires_grad=True)
        (x * 2).sum().backward()

    (backward,) = [event for event in traced(program).events if isinstance(event, Backward)]
    assert [(g.before, g.after) for g in backward.gradients] == [(None, "2 float32 on meta, not read")]


# --- on a GPU ---------------------------------------------------------------------------------------------------------


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_gpu
def test_a_recording_never_waits_for_a_gpu() -> None:
    waited = 0
    for program in PROGRAMS:
        with suppress(RuntimeError):
            program("cuda")  # what PyTorch does at the first call
        ends: list[str] = []
        session = tensorlens.trace()
        for recorded in (False, True):
            with waiting_is_an_error(), session if recorded else nullcontext():
                try:
                    program("cuda")
                    ends.append("")
                except RuntimeError as error:
                    ends.append(str(error))
        assert ends[1] == ends[0], program.__name__
        assert not [event for event in session.trace().events if "synchroniz" in str(event)], program.__name__
        waited += "synchroniz" in ends[0]
    assert waited < len(PROGRAMS) / 2  # the programs wait by themselves


@needs_gpu
def test_a_recording_keeps_no_memory_of_a_gpu() -> None:
    for program in PROGRAMS:
        used: list[tuple[int, int]] = []
        with suppress(RuntimeError):
            program("cuda")
        for recorded in (False, True):
            with without_collector(), tensorlens.trace() if recorded else nullcontext():
                before = torch.cuda.memory_allocated()
                torch.cuda.reset_peak_memory_stats()
                with suppress(RuntimeError):
                    program("cuda")
                used.append((torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before))
        assert used[1] == used[0], program.__name__


ASSERTS = """import torch
table = torch.zeros(4, 2, device="cuda", requires_grad=True)
index = torch.tensor([9], device="cuda")
picked = torch.nn.functional.embedding(index, table)
doubled = picked * 2
print(doubled.sum().item())
"""


@needs_gpu
def test_a_failed_assertion_on_a_gpu_is_reported(tmp_path: Path) -> None:
    (tmp_path / "asserts.py").write_text(ASSERTS, encoding="utf-8")
    command = [sys.executable, "-m", "tensorlens", "explain", "asserts.py", "--format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (finding,) = json.loads(done.stdout)["diagnostics"]
    assert finding["code"] == "cuda-error-reported-later"
    assert 4 in [label["line"] for label in finding["labels"]]
