"""An internal error reaches no program: the report has a gap instead."""

from __future__ import annotations

import gc
import linecache
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.daily import one_in
from support.folders import DATA
from support.warm import Warm

import tensorlens
from tensorlens.journal.child_config import ComparedRun
from tensorlens.records.invariants import validate
from tensorlens.records.model import Gap
from tensorlens.records.reference import Reference, attach
from tensorlens.runner.launch import RunOptions, Target, run_script
from tensorlens.tracer.frames import source_text
from tensorlens.tracer.isolation import guard, patch
from tensorlens.tracer.patches import table
from tensorlens.tracer.recording import compiled, ops

PROGRAM, COMPARED, CLAIMED = DATA / "entrances.py", DATA / "compared.py", DATA / "claimed.py"
BROKEN = """\
import importlib
owner = importlib.import_module("tensorlens.tracer." + {module!r})
*parts, name = {name!r}.split(".")
for part in parts:
    owner = getattr(owner, part)


def broken(*args, **kwargs):
    raise LookupError("ours")


setattr(owner, name, broken)
"""
"""What a program starts with in which something of ours doesn't work; without the lens it is in nobody's way."""

INNER = """
    saved_tensors.failed_backward.nodes_of
    patches.backward._changes patches.backward._gradients patches.backward.failed_backward_nodes
    saved_tensors.service.stale_saved_tensors
    patches.backward.nonfinite_nodes
    recording.user_callbacks.UserCallbacks.add recording.user_callbacks.UserCallbacks.applied
    recording.user_callbacks.UserCallbacks.module recording.user_callbacks.UserCallbacks.of_method
    recording.user_callbacks.UserCallbacks.register
    recording.user_callbacks.UserCallbacks.watch recording.user_callbacks._versions recording.user_callbacks.Run
    recording.user_callbacks.ReturnWatch
    frames.call_sites.Sites.site_or_outside frames.call_sites.Sites.stack
    recording.user_functions.UserFunctions.find
    saved_tensors.array_guards.ArrayGuards.add saved_tensors.array_guards.ArrayGuards.is_any_changed
    patches.torch_functions._array patches.torch_functions._differ patches.torch_functions._note_statistics
    patches.torch_functions._note_switch patches.torch_functions.note_mode
    recording.dispatch_mode.FastPathMode.find_template recording.dispatch_mode.FastPathMode.add_input
    recording.dispatch_mode.FastPathMode.record_ordinary
    recording.tensor_ids.TensorIds.add recording.tensor_ids.TensorIds.id_of recording.tensor_ids.TensorIds.note_moved
    patches.warnings_and_tracebacks._note patches.warnings_and_tracebacks._put_filter_first
    saved_tensors.context_attributes.ContextAttributes.note
    patches.module_hooks._note_hooked patches.module_hooks._watched_list
    recording.ops.call_kind
    frames.captured_state.CapturedState._add_function frames.captured_state.CapturedState.differences
    patches.module_attributes.Assignments.note
    saved_tensors.packed.version_of
    patches.contexts.note_mode
    patches.checkpoint_recompute._sample
    recording.recorder.Recorder._record recording.recorder.Recorder._write_failure
    recording.recorder.Recorder.accesses recording.recorder.Recorder.note_alias
    recording.recorder.Recorder.note_ending recording.recorder.Recorder.state recording.slow_path.collect_tensors
    patches.checkpoint._CheckpointedFunction.region patches.contexts._note patches.contexts._transform_called
    entry.script.write_end
    patches.optimizer_step.OptimizerSteps.begin patches.optimizer_step.OptimizerSteps.dropped
    patches.optimizer_step.OptimizerSteps.end
    patches.optimizer_state.OptimizerState._note_step patches.optimizer_state.OptimizerState._write_step
    patches.optimizer_state.OptimizerState.call_backward patches.optimizer_state.OptimizerState.name_backward
    patches.optimizer_state.OptimizerState._mark
    patches.functorch.record_patched_call
    saved_tensors.memory_watch.MemoryWatcher.compare_all saved_tensors.memory_watch.MemoryWatcher.watch
    patches.record_call.collect_tensors
""".split()
SLOW_PATH_LEFT = (
    "recording.dispatch_mode.FastPathMode.find_template",
    "recording.dispatch_mode.FastPathMode.record_ordinary",
)  # what fails there is recorded all the same
IN_SIGHT = (
    "patches.warnings_and_tracebacks._calling_frame",
    "patches.warnings_and_tracebacks._level",
    "patches.warnings_and_tracebacks.visible_frames",
)
"""Without these our own frames are seen."""
REFERENCE = """
    reference.saved_copies._Copies._packed reference.saved_copies._Copies.begin reference.saved_copies._Copies.copy
    reference.saved_copies._with_own
    reference.backward_check.BackwardCheck.is_users reference.backward_check.BackwardCheck.check
    reference.backward_check.BackwardCheck.keep reference.backward_check.is_ordinary
    reference.backward_check.Application.take
    reference.gradient_samples.GradientSamples._gradients reference.gradient_samples.GradientSamples._leaves
    reference.gradient_samples.GradientSamples._sample reference.gradient_samples._values
""".split()
"""What only a run for `--reference` calls."""
CLAIMS = """
    entry.claim_checker.ClaimChecker._checked entry.claim_checker.ClaimChecker._evaluate
    entry.claim_checker._exception_claim entry.claim_checker._unchanged
""".split()
EVERYDAY = 8  # one of so many is tried every day


def reasons(trace: Any) -> list[str]:
    return [event.reason for event in trace.events if isinstance(event, Gap)]


def broken(folder: Path, inner: str, program: Path = PROGRAM) -> Path:
    room, module, name = inner.split(".", 2)
    script = folder / "program.py"
    script.write_text(BROKEN.format(module=f"{room}.{module}", name=name) + program.read_text("utf-8"), "utf-8")
    return script


@pytest.mark.parametrize("inner", one_in(EVERYDAY, INNER))
def test_a_program_is_as_it_is_where_something_of_ours_fails(inner: str, warm: Warm, tmp_path: Path) -> None:
    script = broken(tmp_path, inner)
    ran, trace = warm.traced(script)
    assert ran == warm.plain(script)
    assert trace.script.outcome == "error"
    assert validate(trace) == []
    told = any("could not be recorded (LookupError: ours)" in reason for reason in reasons(trace))
    assert told == (inner not in SLOW_PATH_LEFT)


@pytest.mark.complete
@pytest.mark.parametrize("inner", IN_SIGHT)
def test_a_program_goes_on_where_our_frames_are_seen(inner: str, warm: Warm, tmp_path: Path) -> None:
    script = broken(tmp_path, inner)
    ran, trace = warm.traced(script)
    plain = warm.plain(script)
    assert (ran.returncode, ran.stdout.count("given"), trace.script.outcome) == (plain.returncode, 3, "error")
    assert "ours" not in ran.stdout + ran.stderr


@pytest.mark.parametrize("inner", one_in(EVERYDAY, REFERENCE))
def test_both_runs_of_a_comparison_are_as_they_are_where_something_of_ours_fails(
    inner: str, warm: Warm, tmp_path: Path
) -> None:
    script = broken(tmp_path, inner, COMPARED)
    (ran, first), (again, second) = warm.twice(script)
    assert ran == again == warm.plain(script)
    attach(first, second)
    trace = first.trace()
    assert validate(trace) == []
    assert trace.reference is not None
    assert trace.reference.differences == ()
    told = [trace.reference.reason, *reasons(trace)]
    assert [text for text in told if "the check itself failed" in text and text.endswith("(LookupError: ours)")]
    assert bool(trace.reference.reason) == (not inner.startswith("reference.backward_check."))


@pytest.mark.parametrize("copies", [False, True])
def test_a_program_is_as_it_is_where_a_comparison_cannot_begin(copies: bool, warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("print(1)")
    seed: Any = "no number"
    ran, reader = warm.read(script, ComparedRun(seed, remove_hash_seed=False, copy_saved_tensors=copies))
    assert ran == warm.plain(script)
    attach(reader, reader)
    assert str(reader.reference.reason if reader.reference else "").startswith(
        "the check itself failed at its beginning (RuntimeError: "
    )


def test_a_comparison_that_fails_in_the_command_leaves_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any) -> None:
        raise LookupError("ours")

    script = tmp_path / "program.py"
    script.write_text("print(1)")
    monkeypatch.setattr("tensorlens.records.reference.compare", fails)
    trace = run_script(Target("file", str(script)), RunOptions(reference=True))
    assert trace.script.outcome == "ok"
    assert trace.reference == Reference(reason="the check itself failed (LookupError: ours)")


@pytest.mark.parametrize("inner", one_in(EVERYDAY, CLAIMS))
def test_a_script_is_as_it_is_where_its_claims_cannot_be_checked(inner: str, warm: Warm, tmp_path: Path) -> None:
    script = broken(tmp_path, inner, CLAIMED)
    ran, trace = warm.traced(script)
    assert ran == warm.plain(script)
    assert validate(trace) == []
    failed = [claim.error for claim in trace.claims if not claim.as_expected]
    assert set(failed) == {"LookupError: ours, in the checker itself"}


NESTED = """
import sys
import torch


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        if ctx.depth < 70:  # from the 60th on torch uses other threads
            with torch.enable_grad():
                x = torch.ones(1, requires_grad=True)
                loss = Nested.apply(x, ctx.depth + 1).sum()
            {passes}
            return gradient + x.grad, None
        print("deep enough")
        return gradient, None


def watch(frame, event, value):
    pass


def hook(gradient):
    sys.setprofile(watch)
    if gradient.numel() == 1:
        return gradient * 2
    return gradient


x = torch.ones(1, requires_grad=True)
Nested.apply(x, 0).sum().backward()
print(x.grad)
x.register_hook(hook)
x.sum().backward()
print(sys.getprofile() is watch)
"""


@pytest.mark.parametrize("passes", ["(x.grad,) = torch.autograd.grad(loss, x)", "loss.backward()"])
def test_backward_passes_inside_each_other_find_room_on_the_stack(passes: str, warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(NESTED.format(passes=passes), "utf-8")
    ran, trace = warm.traced(script)
    assert "deep enough" in ran.stdout
    assert ran == warm.plain(script)
    assert validate(trace) == []


UNHASHABLE = """
import torch
from torch.overrides import handle_torch_function, has_torch_function


class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print("own", type(function).__name__)
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))


class Api:
    __hash__ = None

    def __call__(self, x):
        if has_torch_function((x,)):
            return handle_torch_function(self, (x,), x)
        print("called", x)
        if len(x) == 3:
            raise KeyError("the program's own")
        return x * 2


class Refused(Api):
    def __hash__(self):
        raise OSError("no hash")


for api in (Api(), Refused()):
    for x in (torch.ones(2), torch.ones(3), torch.ones(2).as_subclass(Own)):
        try:
            print(api(x))
        except Exception as error:
            print(repr(error), repr(error.__context__))
"""


def test_a_callable_without_a_hash_is_called(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(UNHASHABLE, "utf-8")
    ran, trace = warm.traced(script)
    assert ran == warm.plain(script)
    expected = ("a call could not be recorded (TypeError: unhashable type: 'Api')", "(OSError: no hash)")
    assert all(any(text in reason for reason in reasons(trace)) for text in expected)
    assert validate(trace) == []


SIGNALS = """
import functools
import signal
import torch


class Late(Exception):
    pass


class Handler:
    def handle(self, number, frame):
        late(number, frame)


def late(number, frame):
    global raised
    raised += 1
    raise Late


def step():
    y = (x * 2).sum()
    y.backward()
    x.grad = None
    x.detach().numpy()
    torch.nn.Parameter(x.detach())
    list(torch.ones(3))


def attempt():
    global caught
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + (turn % 37) * 0.0001)
        before = raised
        while raised == before:
            step()
    except Late:
        caught += 1


x = torch.ones(2, requires_grad=True)
step()
raised = caught = 0
handlers = (late, lambda *given: late(*given), Handler().handle, functools.partial(late))
for turn in range(200):
    signal.signal(signal.SIGALRM, handlers[turn % len(handlers)])
    attempt()
print(raised - caught)
"""
HOOKLESS = """
import sys
import torch

del sys.excepthook
torch.ones(2, requires_grad=True).add_(1)
"""
SPOILT = """
import builtins


def isinstance(*args):
    raise OSError


builtins.isinstance = isinstance
1 / 0
"""


def test_what_a_signal_handler_raises_in_the_midst_of_ours_is_the_programs(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(SIGNALS, "utf-8")
    ran, trace = warm.traced(script)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0\n", "")
    assert not any("Late" in reason for reason in reasons(trace))


class _Late(Exception):
    """A signal handler raises it."""


class _Interrupted(Exception):
    """An internal error: to read its text sends a signal."""

    def __str__(self) -> str:
        signal.raise_signal(signal.SIGUSR1)
        return "ours"


def test_what_a_signal_handler_raises_while_an_error_of_ours_is_reported_is_the_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def handler(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with tensorlens.trace() as run:
            with pytest.raises(_Late):
                guard.safe_text(_Interrupted())
            recorder = run._recorder
            assert recorder is not None
            recorder.internal_error("this", LookupError("ours"))
            with pytest.raises(_Late):
                recorder.internal_error("this", _Interrupted())
            monkeypatch.setitem(ops.RISKS, torch.log, lambda args, kwargs: str(_Interrupted()))
            with pytest.raises(_Late):
                ops.note_risk(recorder, torch.log, (), {})
            monkeypatch.setattr(linecache, "getlines", lambda name: str(_Interrupted()))
            with pytest.raises(_Late):
                source_text._cached("none.py")
            monkeypatch.undo()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert reasons(run.trace()) == ["this could not be recorded (LookupError: ours)"]


@pytest.mark.parametrize("program", [HOOKLESS, SPOILT], ids=["without an exception hook", "spoilt"])
def test_how_a_program_ends_is_shown_without_a_frame_of_ours(program: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(program, "utf-8")
    plain, traced = (
        subprocess.run([sys.executable, *command, str(script)], capture_output=True, text=True, check=False)
        for command in ([], ["-m", "tensorlens", "explain", "-o", str(tmp_path / "trace.json")])
    )
    assert plain.stderr == traced.stderr
    assert "Traceback" in plain.stderr


LIFETIMES = """
import weakref
import torch

for make in (lambda: torch.ones(2, requires_grad=True), lambda: torch.ones(2) * 2, lambda: torch.ones(2).split(1)[0]):
    x = make()
    seen = weakref.ref(x)
    del x
    print(seen() is None)
with torch.inference_mode():
    x = torch.ones(2) + 1
    seen = weakref.ref(x)
    del x
    print(seen() is None)
"""


@pytest.mark.parametrize("compiled", [True, False])
def test_an_error_that_is_passed_over_keeps_nothing_alive(compiled: bool, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(LIFETIMES, "utf-8")
    environment = {**os.environ, "TENSORLENS_PURE_PYTHON": "" if compiled else "1"}
    command = [sys.executable, "-m", "tensorlens", "explain", "-o", str(tmp_path / "trace.json"), str(script)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("True\n" * 4, "")


def test_a_program_of_every_entrance_leaves_no_gap_of_ours(warm: Warm) -> None:
    ran, trace = warm.traced(PROGRAM)
    assert ran == warm.plain(PROGRAM)
    assert not any("could not be" in reason for reason in reasons(trace))


def test_every_patch_has_a_net() -> None:
    own_nets = {"backward", "OrderedDict", "__enter__", "__exit__"}  # a descriptor, a class, those of `record_function`
    own_nets |= {"handle_torch_function"} if compiled.FastPath is not None else set()  # in C
    bare = []
    with tensorlens.trace():
        for owner, name, _ in table.PATCHES:
            installed = vars(owner)[name]
            function = getattr(installed, "__func__", installed)
            if getattr(function, "__code__", None) is not patch.observe(_same)(Recorder(), len).__code__:
                bare.append(name)
    assert {name for name in bare if not name.startswith("_global_")} == own_nets


def _same(recorder: Any, original: Any) -> Any:
    def recording(_: Any, *args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    return recording


class Recorder:
    """The part of a recorder that a patch needs."""

    paused = False

    def __init__(self) -> None:
        self.told: list[str] = []

    def internal_error(self, what: str, error: Exception, frame: Any = None) -> None:
        self.told.append(f"{what}: {error}")


class Program(Exception):
    pass


def fails_before(recorder: Any, original: Any) -> Any:
    def recording(_: Any, *args: Any) -> Any:
        raise LookupError("ours")

    return recording


def fails_after(recorder: Any, original: Any) -> Any:
    def recording(_: Any, *args: Any) -> Any:
        original(*args)
        raise LookupError("ours")

    return recording


def fails_at_its_failure(recorder: Any, original: Any) -> Any:
    def recording(_: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except BaseException:
            raise LookupError("ours") from None

    return recording


def fails_in_the_end(recorder: Any, original: Any) -> Any:
    def recording(_: Any, *args: Any) -> Any:
        try:
            return original(*args)
        finally:
            raise LookupError("ours")

    return recording


FAILING = (fails_before, fails_after, fails_at_its_failure, fails_in_the_end)


@pytest.mark.parametrize("wrap", [_same, *FAILING])
def test_the_original_runs_once_and_has_its_own_outcome(wrap: Callable[[Any, Any], Any]) -> None:
    ran = []

    def original(value: Any) -> Any:
        ran.append(value)
        if isinstance(value, BaseException):
            raise value
        return [value]

    recorder = Recorder()
    patched = patch.observe(wrap)(recorder, original)
    assert patched(1) == [1]
    for error in (Program(), KeyboardInterrupt(), SystemExit(3)):
        context = ValueError()
        error.__context__ = context
        with pytest.raises(type(error)) as caught:
            patched(error)
        assert caught.value is error
        assert error.__context__ is context
    assert len(ran) == 4
    expected: dict[Any, int] = {_same: 0, fails_before: 4, fails_after: 1, fails_at_its_failure: 3, fails_in_the_end: 4}
    assert len(recorder.told) == expected[wrap]


def test_ctrl_c_in_what_is_ours_is_not_caught() -> None:
    def wrap(recorder: Any, original: Any) -> Any:
        def recording(_: Any) -> None:
            raise KeyboardInterrupt

        return recording

    recorder = Recorder()
    with pytest.raises(KeyboardInterrupt):
        patch.observe(wrap)(recorder, list)()
    with pytest.raises(KeyboardInterrupt), guard.ErrorGuard(recorder, "a call"):
        raise KeyboardInterrupt
    assert recorder.told == []


@pytest.mark.parametrize("wrap", [_same, *FAILING])
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_kept_alive(wrap: Callable[[Any, Any], Any], fails: bool) -> None:
    def original(tensor: Any) -> Any:
        if fails:
            raise Program
        return tensor

    patched = patch.observe(wrap)(Recorder(), original)

    def used() -> weakref.ref[torch.Tensor]:
        tensor = torch.ones(1)
        try:
            patched(tensor)
        except Program:
            pass
        return weakref.ref(tensor)

    gc.disable()
    try:
        assert used()() is None
    finally:
        gc.enable()


class Owner:
    def method(self, value: Any) -> Any:
        return value

    @classmethod
    def of_class(cls, value: Any) -> Any:
        return cls, value

    @staticmethod
    def plain(value: Any) -> Any:
        return value


class Inheriting(Owner):
    pass


NAMES = ("method", "of_class", "plain")


def test_a_wrapper_receives_the_frame_that_calls_the_patched_function() -> None:
    frames = []

    @patch.observe
    def wrap(recorder: Any, original: Any) -> Any:
        def recording(frame: Any, *args: Any) -> Any:
            frames.append(frame)
            return original(*args)

        return recording

    before = dict(vars(Owner))
    recorder = Recorder()
    with patch.patched([patch.Patch(Owner, name, wrap) for name in NAMES], recorder):
        assert (Owner().method(1), Owner.of_class(2), Owner.plain(3)) == (1, (Owner, 2), 3)
        here = sys._getframe()
        assert [frame is here for frame in frames] == [True, True, True]
        assert Owner.of_class.__name__ == "of_class"
        recorder.paused = True
        assert Inheriting.of_class(4) == (Inheriting, 4)
        assert len(frames) == 3
    assert dict(vars(Owner)) == before
    assert recorder.told == []


def test_patches_are_undone_in_the_opposite_order_and_a_missing_name_is_an_internal_error() -> None:
    def wrap(recorder: Any, original: Any) -> Any:
        return [*original, len(original)]

    recorder = Recorder()
    table = {"names": ["first"]}
    holder = type("Holder", (), table)
    patches = [patch.Patch(holder, name, wrap) for name in ("names", "gone", "names")]
    with patch.patched(patches, recorder):
        assert holder.names == ["first", 1, 2]  # type: ignore[attr-defined]
    assert holder.names is table["names"]  # type: ignore[attr-defined]
    assert [text.partition(":")[0] for text in recorder.told] == ["`gone`"]
    inheriting = type("InheritingHolder", (holder,), {})
    with patch.patched(patches[:1], recorder), patch.patched([patch.Patch(inheriting, "names", wrap)], recorder):
        assert vars(inheriting)["names"] == ["first", 1, 2]
    assert "names" not in vars(inheriting)
