"""Finds what was open around a rejected call: a mode, a `torch.func` transform, a checkpoint, a custom Function."""

from __future__ import annotations

from collections.abc import Callable

from tensorlens.analysis.contexts import last_recomputed_checkpoint, open_region
from tensorlens.analysis.lineage import ancestry
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles.inference import gradient_in_inference, made_in_inference
from tensorlens.diagnostics.shared.roles.tensors import value, views
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.model import GradMode, Region

_TRANSFORMS = ("func.", "dual_level")
_OPS = ("Tensor.", "torch.", "nn.", "autograd.", "optim.", "ops.")


def mode(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the mode under which the rejected call ran, or under which one of its tensors was made."""
    transform = open_region(rejected.facts, rejected.index, *_TRANSFORMS) or _left_by(rejected)
    if transform is not None and made_in_inference(rejected) is None:
        return LabelledSite(None, transform.site, f"`{transform.name}` begins here")
    switch = _switch(rejected)
    if switch is not None:
        return LabelledSite(None, switch.site, f"`{switch.cause}` begins here")
    entered = open_region(rejected.facts, rejected.index)
    return None if entered is None else LabelledSite(None, entered.site, f"`{entered.name}` begins here")


def _switch(rejected: RejectedCall) -> GradMode | None:
    """Finds the switch of gradient recording around an inference tensor, the rejected call, or its inputs."""
    facts = rejected.facts
    inference = made_in_inference(rejected)
    numbers = [*views(rejected), *(access.tensor for access in rejected.inputs)]
    if not rejected.inputs and (made := value(rejected)) is not None and made.tensor is not None:
        numbers.append(made.tensor)
    makers = [facts.first_use(n) for n in ([inference] if inference is not None else []) + numbers]
    switches = [facts.mode_switch(made.index) for made in makers if made is not None and made.mode != "grad"]
    if inference is None:
        switches.insert(0, facts.mode_switch(rejected.index))
    gradient = gradient_in_inference(rejected) if rejected.op.endswith("backward") else None
    if gradient is not None:
        switches.insert(0, facts.mode_switch(gradient[1].index))
    return next((switch for switch in switches if switch is not None), None)


def _left_by(rejected: RejectedCall) -> Region | None:
    """Finds the transform that the exception ended: the last one that a line of the traceback entered."""
    stack = () if rejected.failure is None else rejected.failure.stack
    events = [e for e in rejected.facts.events if isinstance(e, Region) and e.entering and e.name.startswith("func.")]
    return next((e for e in reversed(events) if e.site in stack and e.index < rejected.index), None)


def called(rejected: RejectedCall) -> LabelledSite | None:
    """Finds the call of a checkpoint, a custom Function, a transform or a library function that the failure went
    through."""
    facts = rejected.facts
    checkpoint = None if rejected.failure is None else last_recomputed_checkpoint(facts, rejected.failure)
    if checkpoint is not None:
        return LabelledSite(None, checkpoint.site, "the checkpoint: backward runs it again")
    if rejected.op.endswith(".apply"):
        return LabelledSite(None, rejected.site, f"{op_text(rejected.op)} is called here")
    transform = open_region(facts, rejected.index, "func.") or _left_by(rejected)
    if transform is not None:
        return LabelledSite(None, transform.site, f"`{transform.name}` is called here")
    above = [call for access in rejected.inputs for _, call in ancestry(facts, access.tensor, rejected.index)]
    call = next((c for c in above if c.op.endswith(".apply")), None)
    if call is not None:
        return LabelledSite(None, call.site, f"{op_text(call.op)} is called here")
    if rejected.op and not rejected.op.startswith(_OPS):
        return LabelledSite(None, rejected.site, f"{op_text(rejected.op)} is called here")
    return None


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "mode_entered_here": mode,
    "grad_mode_off_here": mode,
    "called_here": called,
}
