"""Runs that record some of their training steps: `--every`, `--steps` and `trace(every=..., steps=...)`."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.overrides import TorchFunctionMode

import tensorlens
from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.sampled_run import part_of, sampling_of, sampling_text
from tensorlens.diagnostics import diagnose
from tensorlens.records.invariants import validate
from tensorlens.records.model import Backward, Call, Event, Trace
from tensorlens.records.threads import SharedSite
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.json import to_dict
from tensorlens.render.report.terminal import to_terminal
from tensorlens.session import Session
from tensorlens.tracer.recording import compiled


def train(steps: int, inside: Callable[[int, torch.Tensor], object] = lambda step, out: None) -> list[torch.Tensor]:
    """Trains a small net. `inside` is called in each step, numbered from 1, before backward."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.randn(5, 3)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        out = model(data).sigmoid()
        inside(step, out)
        out.mean().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def recorded(lens: Session) -> Trace:
    trace = lens.trace()
    validate(trace)
    return trace


def steps_of(trace: Trace) -> list[tuple[int, int]]:
    sampling = sampling_of(trace)
    return [] if sampling is None else [(each.first, each.last) for each in sampling.stretches]


def described(trace: Trace, events: tuple[Event, ...]) -> list[Any]:
    """Describes calls and passes without the numbers of tensors: ops, lines, modes, names, and whether they wrote."""
    names, found = names_of(trace), list[Any]()
    for event in events:
        if isinstance(event, Call | Backward):
            tensors = event.roots if isinstance(event, Backward) else (*event.inputs, *event.outputs)
            called = [names.display_name(each.tensor, event.index) for each in tensors]
            span = trace.sites[event.site].span
            more = (len(event.gradients),) if isinstance(event, Backward) else (len(event.writes), event.mode)
            found.append((event.op, span.line, called, *more))
    return found


def by_step(trace: Trace) -> list[list[Any]]:
    """Splits the events of a complete recording after each optimizer step: the last call of a step is its `step()`."""
    steps: list[list[Event]] = [[]]
    for event, following in zip(trace.events, (*trace.events[1:], None), strict=True):
        steps[-1].append(event)
        is_step = isinstance(event, Call) and event.within and event.op == event.within
        if is_step and not (isinstance(following, Call) and following.within):
            steps.append([])
    return [described(trace, tuple(events)) for events in steps]


@settings(max_examples=12, deadline=None)
@given(every=st.integers(1, 9), steps=st.integers(1, 12))
def test_recorded_steps_are_those_of_a_complete_recording(every: int, steps: int) -> None:
    with tensorlens.trace() as whole:
        expected = train(steps)
    with tensorlens.trace(every=every) as lens:
        got = train(steps)
    assert all(torch.equal(*pair) for pair in zip(got, expected, strict=True))
    trace, complete = recorded(lens), by_step(whole.trace())
    wanted = [step for step in range(1, steps + 1) if step == 1 or step % every == 0]
    if sampling_of(trace) is None:  # the step that the run ended in is recorded, too
        assert wanted == [*range(1, steps + 1)]
        return
    numbers = [step for first, last in steps_of(trace) for step in range(first, last + 1) if step <= steps]
    assert numbers == wanted
    for stretch in sampling_of(trace).stretches:  # type: ignore[union-attr]
        steps_inside = [
            event for step in range(stretch.first, stretch.last + 1) if step <= steps for event in complete[step - 1]
        ]
        start, end = trace.position(stretch.start), trace.position(stretch.end)
        found = described(trace, trace.events[start:end])
        assert found[: len(steps_inside)] == steps_inside


def test_a_plain_run_and_a_sampled_run_compute_the_same_bits() -> None:
    plain = train(12)
    with tensorlens.trace(every=5):
        sampled = train(12)
    assert all(torch.equal(*pair) for pair in zip(plain, sampled, strict=True))
    assert torch._C._len_torch_function_stack() == 0


def test_the_report_says_which_steps_were_recorded(tmp_path: Any) -> None:
    with tensorlens.trace(every=5) as lens:
        train(12)
    text = "recorded 3 of 12 training steps (the first and every 5th); the others were counted only, and what followed"
    assert sampling_text(recorded(lens)).startswith(text)
    report = lens.report()
    assert text in " ".join(to_terminal(report, RenderOptions()).split())
    found = to_dict(report, RenderOptions())["sampling"]
    assert (found["recorded"], found["steps"]) == (3, 12)
    assert "no problem found in the recorded steps" in " ".join(to_terminal(report, RenderOptions()).split())


def test_no_line_is_said_of_a_run_that_recorded_every_step() -> None:
    with tensorlens.trace(steps="1:") as lens:
        train(3)
    assert sampling_text(recorded(lens)) == ""


@pytest.mark.parametrize(
    ("steps", "numbers"),
    [
        ("3:4", [1, 3, 4]),
        ((3, 4), [1, 3, 4]),
        ("4:", [1, 4, 5, 6]),
        (":2", [1, 2]),
        ("5", [1, 5]),
        ((None, 3), [1, 2, 3]),
    ],
)
def test_a_range_has_both_of_its_ends(steps: Any, numbers: list[int]) -> None:
    with tensorlens.trace(steps=steps) as lens:
        train(6)
    found = [step for first, last in steps_of(recorded(lens)) for step in range(first, last + 1) if step <= 6]
    assert found == numbers


@pytest.mark.parametrize(
    "wrong",
    [
        {"every": 0},
        {"every": "x"},
        {"every": True},
        {"steps": "5:3"},
        {"steps": "a:b"},
        {"steps": ":"},
        {"steps": "0:3"},
        {"every": 2, "steps": "1:2"},
    ],
)
def test_a_wrong_value_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^(every|steps) "):
        tensorlens.trace(**wrong)


def fails_in(wanted: int) -> Callable[[int, torch.Tensor], object]:
    return lambda step, out: out.zero_() if step == wanted else None


@pytest.mark.parametrize("step", [1, 4])
def test_a_failure_in_a_recorded_step_has_the_finding_of_a_complete_recording(step: int) -> None:
    found = []
    for every in (4, None):
        with pytest.raises(RuntimeError), tensorlens.trace(every=every) as lens:
            train(6, fails_in(step))
        found.append([(d.code, d.title, d.labels[0].span.line) for d in lens.report().diagnostics])
    assert found[0] == found[1]
    assert found[0][0][0] == "saved-tensor-modified-inplace"


def test_the_steps_that_a_report_asks_for_explain_the_failure() -> None:
    """A recorded optimizer step before the failing one reads gradients, which no call has made."""
    found = []
    for steps in ("5:6", "4:6", None):
        with pytest.raises(RuntimeError), tensorlens.trace(steps=steps) as lens:
            train(8, fails_in(6))
        found.append([(d.code, d.title, d.labels[0].span.line) for d in lens.report().diagnostics])
    assert found[0] == found[1] == found[2]
    assert found[0][0][0] == "saved-tensor-modified-inplace"


def test_passes_have_no_number_if_some_were_not_recorded() -> None:
    def run() -> None:
        start, weight = torch.ones(3), torch.ones(3, requires_grad=True)
        optimizer, kept = torch.optim.SGD([weight], lr=0.1), start
        for step in range(1, 9):
            kept = (kept if step == 7 else start) * weight.exp()
            kept.sum().backward()
            optimizer.step()

    with pytest.raises(RuntimeError), tensorlens.trace(steps="5:8") as lens:
        run()
    (found,) = lens.report().diagnostics
    texts = [label.text for label in found.labels]
    assert found.code == "backward-through-freed-graph"
    assert "an earlier pass: it released the graph" in texts
    assert not [text for text in texts if "pass 2" in text or "pass 3" in text]


def test_an_exception_of_the_program_needs_no_other_step() -> None:
    def inside(step: int, out: torch.Tensor) -> None:
        if step == 4:
            raise ValueError("of the program")

    with pytest.raises(ValueError), tensorlens.trace(every=4) as lens:  # noqa: PT011
        train(6, inside)
    (found,) = lens.report().diagnostics
    assert (found.code, found.explanation, found.fixes) == ("uncaught-exception", "", ())


def test_a_failure_in_another_step_names_its_line_and_how_to_record_it() -> None:
    with pytest.raises(RuntimeError), tensorlens.trace(every=4) as lens:
        train(6, fails_in(6))
    (found,) = lens.report().diagnostics
    assert found.code == "uncaught-exception"
    assert found.explanation == "step 6 was not recorded: only its traceback is known"
    assert "out.mean().backward()" in lens.trace().sources[__file__].splitlines()[found.labels[0].span.line - 1]
    assert "`--steps 5:6`" in found.fixes[0].title
    recorded(lens)


def test_a_graph_from_a_step_without_a_record_gets_no_cause() -> None:
    kept: list[torch.Tensor] = []

    def inside(step: int, out: torch.Tensor) -> None:
        if step == 3:
            kept.append((out * out).sum())
            out.data.zero_()
            out.zero_()
        elif step == 4:
            kept[0].backward()

    with pytest.raises(RuntimeError), tensorlens.trace(every=4) as lens:
        train(6, lambda step, out: inside(step, out.clone()))
    (found,) = lens.report().diagnostics
    assert found.code == "uncaught-exception"
    assert found.explanation == "the steps before step 4 were not all recorded, and what it needs may be from there"


def test_writes_between_recorded_steps_are_given_to_no_line() -> None:
    parameter = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    with tensorlens.trace(every=3) as lens:
        for step in range(1, 7):
            loss = parameter.pow(2).sum()
            loss.backward()
            optimizer.step()
            if step == 1:  # after it: in the second
                with torch.no_grad():
                    parameter.mul_(2)
                    parameter.add_(1)
    trace = recorded(lens)
    parts = [part_of(trace, stretch) for stretch in sampling_of(trace).stretches]  # type: ignore[union-attr]
    writes = [write for part in parts for event in part.events if isinstance(event, Call) for write in event.writes]
    assert [write.after - write.before for write in writes] == [1, 1, 1]
    assert writes[1].before > writes[0].after + 1  # of the steps in between nothing is known


def test_a_tensor_made_without_a_record_has_no_origin() -> None:
    kept: list[torch.Tensor] = []

    def inside(step: int, out: torch.Tensor) -> None:
        if step == 2:
            kept.append(out.detach() * 2)
        elif step == 3:
            kept[0].sum()

    with tensorlens.trace(every=3) as lens:
        train(3, inside)
    trace = recorded(lens)
    used = next(e for e in trace.events if isinstance(e, Call) and e.op == "Tensor.sum")
    assert trace.tensors[used.inputs[0].tensor].created_by is None


class Doing(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_the_mode_waits_for_the_modes_of_the_program() -> None:
    before = torch._C._len_torch_function_stack()
    seen: list[int] = []

    def inside(step: int, out: torch.Tensor) -> None:
        seen.append(torch._C._len_torch_function_stack())

    with tensorlens.trace(every=100) as lens:
        with Doing():
            train(3, inside)
        train(3, inside)
    assert seen[:3] == [before + 2] * 3  # ours is below the program's, and stays there
    assert torch._C._len_torch_function_stack() == before
    recorded(lens)


def test_a_mode_that_is_opened_between_recorded_steps_keeps_its_place() -> None:
    mode = Doing()

    def inside(step: int, out: torch.Tensor) -> None:
        if step == 2:
            mode.__enter__()  # type: ignore[no-untyped-call]
        elif step == 5:
            assert torch._C._get_function_stack_at(torch._C._len_torch_function_stack() - 1) is mode
            mode.__exit__(None, None, None)

    with tensorlens.trace(every=4) as lens:
        train(9, inside)
    assert torch._C._len_torch_function_stack() == 0
    assert steps_of(recorded(lens))[0] == (1, 1)


def test_optimizers_that_step_inside_backward_leave_the_mode_in_place() -> None:
    with tensorlens.trace(every=2) as lens:
        weights = [torch.ones(2, requires_grad=True) for _ in range(2)]
        optimizers = {weight: torch.optim.SGD([weight], lr=0.1) for weight in weights}
        for weight in weights:
            weight.register_post_accumulate_grad_hook(lambda weight: optimizers[weight].step())
        for _ in range(6):
            (weights[0] * weights[1]).sum().backward()
    assert torch._C._len_torch_function_stack() == 0
    recorded(lens)


def test_in_turns_one_optimizer_ends_the_steps() -> None:
    with tensorlens.trace(every=3) as lens:
        weights = [torch.ones(2, requires_grad=True) for _ in range(2)]
        optimizers = [torch.optim.SGD([weight], lr=0.1) for weight in weights]
        for _ in range(6):
            for weight, optimizer in zip(weights, optimizers, strict=True):
                optimizer.zero_grad()
                weight.sum().backward()
                optimizer.step()
        for _ in range(5):  # the other takes its place
            optimizers[1].step()
    assert sampling_of(recorded(lens)).ended == 11  # type: ignore[union-attr]


def test_without_an_optimizer_a_step_ends_with_its_backward_pass() -> None:
    gc.freeze()  # other tests may have left optimizers behind
    with tensorlens.trace(every=3) as lens:
        weight = torch.ones(2, requires_grad=True)
        for _ in range(7):
            (gradient,) = torch.autograd.grad((weight * 2).sum(), [weight])
            with torch.no_grad():
                weight -= gradient
    gc.unfreeze()
    sampling = sampling_of(recorded(lens))
    assert sampling is not None
    assert (sampling.recorded, sampling.ended) == (3, 7)


def test_accumulated_gradients_are_one_step() -> None:
    with tensorlens.trace(every=2) as lens:
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for number in range(1, 13):
            (weight * 2).sum().backward()
            if number % 4 == 0:
                optimizer.step()
    sampling = sampling_of(recorded(lens))
    assert sampling is not None
    assert (sampling.recorded, sampling.ended) == (2, 3)


def test_threads_keep_running_while_no_step_is_recorded() -> None:
    results: list[float] = []

    def work() -> None:
        results.append(float(torch.ones(4).sum()))

    def inside(step: int, out: torch.Tensor) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with tensorlens.trace(every=3) as lens:
        train(7, inside)
    assert results == [4.0] * 7
    recorded(lens)


def test_a_quiet_block_goes_on_when_recording_switches_inside_it() -> None:
    with tensorlens.trace(every=100) as lens:
        recorder = lens._recorder
        assert recorder is not None
        x = torch.ones(2)
        for number in range(3):
            if number == 1:
                with recorder.quiet():
                    recorder.paused = True
                    recorder.paused = False
                    x.sin()
            x.cos().sin()
    made = ["torch.ones", *["Tensor.cos", "Tensor.sin"] * 3]
    assert [call.op for call in recorded(lens).events if isinstance(call, Call)] == made


def test_a_silent_mistake_on_a_line_of_several_threads_is_withheld() -> None:
    def inside(step: int, out: torch.Tensor) -> None:
        torch.zeros(1, requires_grad=True).sqrt().backward()  # its derivative is infinite

    with tensorlens.trace(every=2) as lens:
        train(4, inside)
    trace = recorded(lens)
    findings = [each for each in diagnose(trace) if each.code == "infinite-or-nan-gradient-at-boundary"]
    assert findings
    site = next(event.site for event in trace.events if isinstance(event, Call) and event.op == "Tensor.sqrt")
    shared = replace(trace, inspection=replace(trace.inspection, threads=(SharedSite(0, site),)))
    assert not [each for each in diagnose(shared) if each.code == findings[0].code]


def test_findings_about_a_whole_run_are_silent() -> None:
    """Gradients are cleared in the steps that are not recorded."""
    with tensorlens.trace(every=4) as lens:
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for number in range(1, 10):
            (weight * 2).sum().backward()
            optimizer.step()
            if number % 4 == 3:
                optimizer.zero_grad()
    assert lens.report().diagnostics == ()


def test_a_checkpoint_may_cross_into_steps_without_a_record() -> None:
    from torch.utils.checkpoint import checkpoint

    with tensorlens.trace(every=3) as lens:
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        waiting = None
        for _ in range(7):
            loss = checkpoint(lambda value: value.sin().sum(), weight * 1, use_reentrant=False)
            if waiting is not None:
                waiting.backward()
            waiting = loss if waiting is None else None
            optimizer.step()
    recorded(lens)
    assert lens.report().diagnostics == ()


def test_recordings_in_each_other_count_for_themselves() -> None:
    with tensorlens.trace(every=3) as outer, tensorlens.trace() as whole, tensorlens.trace(every=2) as inner:
        train(5)
    assert torch._C._len_torch_function_stack() == 0
    assert sampling_of(recorded(whole)) is None
    assert steps_of(recorded(inner))[0] == (1, 2)
    recorded(outer)


def functions_of_the_lens(run: Callable[[], object]) -> list[str]:
    """Returns the functions of the lens that run in this thread while `run` does, each as often as it is called."""
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "/tensorlens/" in frame.f_code.co_filename:
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sorted(called)


@pytest.fixture(params=["in C", "in Python"])
def fast_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Records with the compiled fast path, and without it. Returns whether it is compiled."""
    if request.param == "in Python":
        monkeypatch.setattr(compiled, "FastPath", None)
    elif compiled.FastPath is None:
        pytest.skip("not built from this source: python hatch_build.py")
    return compiled.FastPath is not None


def test_a_step_without_a_record_only_counts(fast_path: bool) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    with tensorlens.trace(every=4) as lens:
        step()
        found = [functions_of_the_lens(step) for _ in range(6)]
    assert found[0] == found[3] == found[4] == ([] if fast_path else ["__call__", "__get__"])
    assert "_note_pass" in found[2]  # of the fourth step
    assert functions_of_the_lens(step) == []
    assert steps_of(recorded(lens)) == [(1, 1), (4, 4), (8, 8)]


def test_the_first_of_two_optimizers_ends_the_steps_without_a_record(fast_path: bool) -> None:
    first, second = (nn.Linear(3, 1) for _ in range(2))
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]

    def step(*order: int) -> None:
        torch.from_numpy(np.ones((2, 3), dtype=np.float32))
        for number in order or (0, 1):
            optimizers[number].zero_grad()
            (first, second)[number](torch.ones(2, 3)).sum().backward()
            optimizers[number].step()

    with tensorlens.trace(every=9) as lens:
        step()
        found = [functions_of_the_lens(step) for _ in range(3)]
        assert found[1] == found[2] == ([] if fast_path else ["__call__", "__call__", "__get__", "__get__"])
        step(1, 1, 1, 0)  # the second one steps twice in between: from here on, it ends the steps
        step(1)
    assert steps_of(recorded(lens)) == [(1, 1), (9, 9)]


@pytest.mark.usefixtures("fast_path")
@pytest.mark.parametrize("from_step", [2, 4])
def test_a_function_that_the_program_replaces_stays_in_place(from_step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = torch.optim.Optimizer.zero_grad, []

    def inside(step: int, out: torch.Tensor) -> None:
        if step == from_step:
            current = torch.optim.Optimizer.zero_grad

            def zero_grad(self: torch.optim.Optimizer, set_to_none: bool = True) -> None:
                calls.append(step)
                current(self, set_to_none)

            monkeypatch.setattr(torch.optim.Optimizer, "zero_grad", zero_grad)

    with tensorlens.trace(every=4) as lens:
        train(9, inside)
    assert len(calls) == 9 - from_step
    assert torch.optim.Optimizer.zero_grad is original
    trace = recorded(lens)
    cleared = [e for e in trace.events if isinstance(e, Call) and e.op == "Tensor.grad.__set__"]
    assert steps_of(trace) == [(1, 1), (4, 4), (8, 8)]
    lines = {trace.sites[call.site].span.line for call in cleared}
    called = {"optimizer.zero_grad()", *(["current(self, set_to_none)"] if from_step == 4 else [])}
    source = trace.sources[__file__].splitlines()
    assert {source[line - 1].strip() for line in lines} == called


def test_a_patch_of_a_class_looks_like_the_function_in_every_step(fast_path: bool) -> None:
    original, seen = torch.optim.Optimizer.zero_grad, []

    def inside(step: int, out: torch.Tensor) -> None:
        current = torch.optim.Optimizer.zero_grad
        seen.append(current is original)
        assert (current.__name__, inspect.signature(current)) == ("zero_grad", inspect.signature(original))
        of_class: Any = vars(torch.optim.Optimizer)["zero_grad"]
        assert of_class.__name__ == "zero_grad"
        parameter = torch.ones(2, requires_grad=True)
        parameter.grad = torch.ones(2)
        of_class(torch.optim.SGD([parameter], lr=0.1), set_to_none=False)
        assert parameter.grad.tolist() == [0, 0]

    with tensorlens.trace(every=3) as lens:
        train(5, inside)
    assert seen == [False, True, False, True, True]
    assert steps_of(recorded(lens)) == [(1, 1), (3, 3), (6, 6)]
    assert vars(torch.optim.Optimizer)["zero_grad"] is original


def test_a_second_recording_inside_leaves_the_first_complete() -> None:
    def inside(step: int, out: torch.Tensor) -> None:
        if step in (3, 4, 6):
            with tensorlens.trace() as inner:
                (torch.ones(2, requires_grad=True) * 2).sum().backward()
            assert any(isinstance(event, Backward) for event in inner.trace().events)

    with tensorlens.trace() as whole:
        train(
            9, lambda step, out: (torch.ones(2, requires_grad=True) * 2).sum().backward() if step in (3, 4, 6) else None
        )
    with tensorlens.trace(every=4) as lens:
        train(9, inside)
    trace = recorded(lens)
    passes = [event for event in trace.events if isinstance(event, Backward)]
    assert [len(step) for step in by_step(whole.trace())][3] > 0
    assert len(passes) == 4  # the first, the fourth and its own two passes, the eighth
