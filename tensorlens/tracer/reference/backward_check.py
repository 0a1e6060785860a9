"""Checks that the `backward` of each custom Function is the derivative of its `forward`, by central differences.

The check runs after the second run of `--reference`, at inputs that the program used. Nothing depends on that run any
more, and its output is dropped. Functions that mean to have another derivative are left out: those whose forward is
piecewise constant or returns its input, and those whose backward is not linear or is zero.
"""

from __future__ import annotations

import inspect
from types import FunctionType, MethodType

import torch

from tensorlens.journal.rows import NONE
from tensorlens.records.further_runs import WrongBackward
from tensorlens.records.reference import FORMULAS
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.recording.fast_path import ATOMS
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.tensor_ids import PLAIN
from tensorlens.tracer.reference.central_differences import Application, Wrong, all_wrong, examined, is_parameter
from tensorlens.tracer.reference.gradient_samples import Comparison

APPLICATIONS = 3  # calls of each class that are kept
MAX_VALUES = 200_000  # of a tensor argument: calls with larger ones are not kept
_CODE = torch.nn.Module, FunctionType, MethodType


class BackwardCheck:
    """Keeps calls of the custom Functions of a run, and checks them when it has ended."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.guard = ErrorGuard(Comparison(recorder.rows, FORMULAS), "the `backward` of a custom Function")
        self._kept: dict[type[torch.autograd.Function], list[Application]] = {}

    def keep(self, kind: type[torch.autograd.Function], args: tuple[object, ...]) -> Application | None:
        """Keeps the arguments of a call that is about to run, if it is to be checked."""
        known = self._kept.get(kind, ())
        if len(known) >= APPLICATIONS or not torch.is_grad_enabled() or not self.is_users(kind):
            return None
        runs_code = any(isinstance(value, _CODE) for value in args)
        wanted = tuple(n for n, value in enumerate(args) if isinstance(value, torch.Tensor) and value.requires_grad)
        if not wanted or not all(map(is_ordinary, args)) or self._may_share(args):
            return None
        application = Application(kind, tuple(_kept(value, runs_code) for value in args), wanted, runs_code)
        self._kept.setdefault(kind, []).append(application)
        return application

    def _may_share(self, args: tuple[object, ...]) -> bool:
        """Returns whether a `backward` runs and gives a call a tensor without a graph, perhaps made from another one.

        The call may give the other one the derivative of both, which a change of one of them alone does not show.
        """
        constant = (isinstance(v, torch.Tensor) and v.is_floating_point() and not v.requires_grad for v in args)
        return self._recorder.callbacks.running.node != NONE and any(constant)

    def is_users(self, kind: type[torch.autograd.Function]) -> bool:
        code = getattr(inspect.unwrap(kind.forward), "__code__", None)
        return code is not None and self._recorder.sites.is_user(code.co_filename)

    def check(self) -> None:
        """Writes a row for each class whose `backward` is not the derivative of its `forward`."""
        names = [kind.__name__ for kind in self._kept]
        with self._recorder.aside(), torch.inference_mode(False), torch.enable_grad():
            for kind, applications in self._kept.items():
                if names.count(kind.__name__) == 1:
                    found = ((each, examined(each)) for each in applications)
                    wrong = next(((each, row) for each, row in found if row is not None), None)
                    if wrong is not None:
                        self._write(kind, *wrong)

    def _write(self, kind: type[torch.autograd.Function], application: Application, row: Wrong) -> None:
        place, backward, differences, weights = row
        name = parameter_name(kind, place)
        others = tuple(parameter_name(kind, each) for each in all_wrong(application) if each != place)
        self._recorder.rows.write_fact(
            WrongBackward, kind.__name__, name, backward, differences, weights, others if weights != "given" else ()
        )


def _kept(value: object, runs_code: bool) -> object:
    """Returns a copy of a tensor. Code that a Function gets reads parameters themselves, not what it gets of them."""
    if not isinstance(value, torch.Tensor) or (runs_code and is_parameter(value)):
        return value
    return value.detach().clone()


def is_ordinary(value: object) -> bool:
    """Returns whether an argument can be used again: a plain value, or a tensor of moderate size in no transform."""
    if isinstance(value, torch.Tensor):
        plain = type(value) in PLAIN and not torch._C._functorch.is_functorch_wrapped_tensor(value)
        return plain and value.layout is torch.strided and not value.is_complex() and value.numel() <= MAX_VALUES
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return all(type(item) in ATOMS for item in value)
    return type(value) in ATOMS or isinstance(value, _CODE)


def parameter_name(kind: type[torch.autograd.Function], place: int) -> str:
    """Returns the name that `forward` has for an argument of `apply`."""
    taken = list(inspect.signature(kind.forward).parameters.values())
    context = kind.setup_context is torch.autograd.function._SingleLevelFunction.setup_context
    own = taken[int(context) :]
    if own and own[-1].kind is inspect.Parameter.VAR_POSITIONAL and place >= len(own) - 1:
        return f"{own[-1].name}[{place - len(own) + 1}]"
    return own[place].name if place < len(own) else f"argument {place}"
