"""The functions that a program gives to what checks or differentiates them: `gradcheck`, `autograd.functional`."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
import torch.autograd.functional

from tensorlens.tracer.isolation.guard import caller
from tensorlens.tracer.recording.recorder import Recorder

GIVEN = "given to "


def takes_function(recorder: Recorder, original: Any) -> Any:
    """A function of torch's whose first argument is a function of the user's."""

    @functools.wraps(original)
    def taking(func: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.paused:
            recorder.callbacks.add(GIVEN + original.__name__, func, caller())
        return original(func, *args, **kwargs)

    return taking


_CHECKS = sys.modules["torch.autograd.gradcheck"]

PATCHES = (
    *((owner, name, takes_function) for owner in (torch.autograd, _CHECKS) for name in ("gradcheck", "gradgradcheck")),
    *(
        (torch.autograd.functional, name, takes_function)
        for name in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
    ),
)
