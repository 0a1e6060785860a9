"""Checks what is reported of an error that a GPU made and that PyTorch noticed later. No GPU takes part.

The tensors pretend to be on one: a `FakeTensorMode` takes their operations, or they are on `meta` and the trace says
`cuda:0`. The script raises PyTorch's message itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

import tensorlens
from tensorlens.analysis.queued_work import queued_work
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics import diagnose
from tensorlens.records.model import Call, Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.trace_file import dumps, loads
from tensorlens.render import render

CODE = "cuda-error-reported-later"
HELP = "Search for `cudaErrorAssert' in https://docs.nvidia.com for more information.\n"
SUFFIX = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)
DSA = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
ASSERTED = f"CUDA error: device-side assert triggered\n{HELP}{SUFFIX}{DSA}"
ILLEGAL = f"CUDA error: an illegal memory access was encountered\n{SUFFIX}{DSA}"
BLOCKING = f"CUDA error: device-side assert triggered\n{HELP}{DSA}"
Error: type[RuntimeError] = getattr(torch, "AcceleratorError", RuntimeError)


def notice(message: str = ASSERTED) -> None:
    raise Error(message)


def trace_of(program: Callable[[], object]) -> Trace:
    session = tensorlens.trace()
    with pytest.raises(RuntimeError, match="CUDA error"), session, FakeTensorMode():
        program()
    return session.trace()


def found_in(trace: Trace) -> Diagnostic:
    (found,) = diagnose(trace)
    assert found.code == CODE
    return found


def lines(trace: Trace, found: Diagnostic, role: str = "queued_here") -> list[str]:
    """Returns the source of the lines with a role, each with the text of its label."""
    texts = []
    for label in found.labels:
        if label.role == role:
            source = trace.sources[label.span.file].splitlines()[label.span.line - 1].strip()
            texts.append(f"{source}: {label.text}")
    return texts


def zeros(*sizes: int) -> torch.Tensor:
    return torch.zeros(*sizes, device="cuda")


QUEUED, CHECKED = "queued on the GPU here; may have failed", "checks its values on the GPU; may have failed"


def test_lines_since_the_last_wait_are_marked_and_those_with_assertions_come_first() -> None:
    def program() -> None:
        table = torch.zeros(4, 2, device="cuda")
        print(table)
        index = torch.zeros(3, device="cuda", dtype=torch.int64)
        picked = functional.embedding(index, table)
        flat = picked.view(-1)
        room = torch.empty_like(flat)
        room.add_(flat)
        notice()

    trace = trace_of(program)
    found = found_in(trace)
    assert lines(trace, found) == [
        f"picked = functional.embedding(index, table): {CHECKED}",
        f"room.add_(flat): {QUEUED}",
        f'index = torch.zeros(3, device="cuda", dtype=torch.int64): {QUEUED}',
    ]
    assert lines(trace, found, "rejected_here") == [
        "raise Error(message): noticed here; an earlier line may have failed"
    ]
    printed = next(n for n, line in enumerate(trace.sources[__file__].splitlines(), 1) if "print(table)" in line)
    assert f"3 other lines queued work since line {printed} last waited for it" in found.explanation
    assert f"on another stream before line {printed} waited" in found.detail[0]
    first, second = found.fixes
    assert "CUDA_LAUNCH_BLOCKING=1 tensorlens explain" in first.title
    assert second.place is not None
    assert "out of range" in second.title
    assert loads(dumps(trace)) == trace
    assert CODE in render(Report(trace, (found,)))


def test_an_illegal_access_has_no_candidates_and_at_most_five_labels() -> None:
    def program() -> None:
        a = zeros(4)
        b = a + 1
        c = b * 2
        d = c.gather(0, torch.zeros(2, dtype=torch.int64, device="cuda"))
        e = d.exp()
        e.sum()
        notice(ILLEGAL)

    trace = trace_of(program)
    found = found_in(trace)
    assert lines(trace, found) == [
        f"e.sum(): {QUEUED}",
        f"e = d.exp(): {QUEUED}",
        f'd = c.gather(0, torch.zeros(2, dtype=torch.int64, device="cuda")): {QUEUED}',
        f"c = b * 2: {QUEUED}",
    ]
    assert "6 other lines queued work" in found.explanation  # one of them is in `zeros`
    assert len(found.fixes) == 1


def test_with_launch_blocking_no_other_line_is_blamed() -> None:
    def program() -> None:
        zeros(4).exp()
        notice(BLOCKING)

    found = found_in(trace_of(program))
    assert [label.role for label in found.labels] == ["rejected_here"]
    assert found.title == "work on the GPU failed (device-side assert triggered) at `raise Error(message)`"
    assert "CUDA_LAUNCH_BLOCKING" in found.explanation


def test_a_message_that_is_not_of_pytorch_is_not_taken_for_exact() -> None:
    def program() -> None:
        zeros(4).exp()
        notice("CUDA error: misaligned address")

    found = found_in(trace_of(program))
    assert [label.role for label in found.labels] == ["rejected_here", "queued_here", "queued_here"]


def test_an_error_on_the_cpu_marks_no_line() -> None:
    def program() -> None:
        torch.zeros(4).exp()
        notice()

    found = found_in(trace_of(program))
    assert [label.role for label in found.labels] == ["rejected_here"]
    assert "no other line is known to have queued work" in found.explanation


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: invalid device ordinal\n" + SUFFIX,
        "CUDA error: no kernel image is available for execution on the device\n" + SUFFIX,
        "CUDA error: out of memory\n" + SUFFIX,
    ],
)
def test_an_error_that_no_kernel_made_is_another_matter(message: str) -> None:
    def program() -> None:
        zeros(4)
        notice(message)

    assert CODE not in [found.code for found in diagnose(trace_of(program))]


def on_gpu(program: Callable[[], object]) -> TraceIndex:
    """Returns the trace of a program on `meta`, as if that were a GPU."""
    session = tensorlens.trace()
    with session:
        program()
    trace = session.trace()
    tensors = tuple(replace(one, device="cuda:0" if one.device == "meta" else one.device) for one in trace.tensors)
    return TraceIndex(replace(trace, tensors=tensors))


def ops_queued(program: Callable[[], object]) -> list[str]:
    facts = on_gpu(program)
    work = queued_work(facts, facts.events[-1].index + 1)
    assert work.whole
    return [event.op for event in reversed(work.events)]


def test_a_training_step_queues_work_line_by_line() -> None:
    def program() -> None:
        layer = torch.nn.Linear(3, 1, device="meta")
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        loss = layer(torch.empty(2, 3, device="meta")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    assert ops_queued(program) == ["nn.init.uniform_", "Tensor.sum", "Tensor.backward", "SGD.step"]


def test_views_and_empty_memory_queue_nothing() -> None:
    def program() -> None:
        x = torch.empty(4, 2, device="meta", requires_grad=True)
        y = x.view(8).detach().t()
        torch.nn.Parameter(y)
        x.requires_grad_(False)
        torch.empty_like(x)

    assert ops_queued(program) == []


@pytest.mark.parametrize("wait", [torch.cuda.synchronize, torch.accelerator.synchronize])
def test_a_call_that_waits_for_the_device_is_recorded(
    wait: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = torch.cuda if wait is torch.cuda.synchronize else torch.accelerator
    monkeypatch.setattr(owner, "synchronize", lambda device=None: None)

    def program() -> None:
        x = torch.zeros(2, device="meta")
        x.exp()
        owner.synchronize()
        x.sin()

    assert ops_queued(program) == ["Tensor.sin"]


def test_a_copy_to_the_host_that_may_not_wait_does_not_count_as_a_wait() -> None:
    def program() -> None:
        x = zeros(2)
        x.exp()
        x.to("cpu", non_blocking=True)
        x.sin()
        x.cpu()
        x.cos()
        notice()

    trace = trace_of(program)
    facts = TraceIndex(trace)
    (to,) = (call for call in facts.calls if call.op == "Tensor.to")
    (cpu,) = (call for call in facts.calls if call.op == "Tensor.cpu")
    before = [event.op for event in queued_work(facts, cpu.index).events]
    assert before[:1] == ["Tensor.sin"]
    assert "Tensor.exp" in before
    assert to.index < cpu.index
    assert [event.op for event in queued_work(facts, facts.events[-1].index + 1).events] == ["Tensor.cos"]


def test_only_the_first_error_is_where_it_was_noticed() -> None:
    def program() -> None:
        x = zeros(2)
        x.exp()
        x.sin()
        notice()

    trace = trace_of(program)
    (last,), sin = trace.failures, trace.events[-1]
    assert isinstance(sin, Call)
    caught = replace(last, index=sin.index, site=sin.site, stack=(sin.site,), caught=True)
    script = replace(trace.script, failure=1)
    trace = replace(trace, failures=(caught, last), script=script, events=trace.events[:-1])
    found = found_in(trace)
    assert found.severity == "error"
    assert lines(trace, found, "rejected_here") == ["x.sin(): noticed here; an earlier line may have failed"]
    assert lines(trace, found, "needed_here") == ["raise Error(message): fails too, as every later CUDA call"]
    assert lines(trace, found)[0] == f"x.exp(): {QUEUED}"
