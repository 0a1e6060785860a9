"""Roles of what was open round a refused call: a mode, a transform of `torch.func`, a checkpoint, a custom Function."""

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


def mode(refusal: RejectedCall) -> LabelledSite | None:
    """The mode under which the refused call ran, or under which one of its tensors was made."""
    transform = open_region(refusal.facts, refusal.index, *_TRANSFORMS) or _left_by(refusal)
    if transform is not None:
        return LabelledSite(None, transform.site, f"`{transform.name}` begins here")
    switch = _switch(refusal)
    if switch is not None:
        return LabelledSite(None, switch.site, f"`{switch.cause}` begins here")
    entered = open_region(refusal.facts, refusal.index)
    return None if entered is None else LabelledSite(None, entered.site, f"`{entered.name}` begins here")


def _switch(refusal: RejectedCall) -> GradMode | None:
    """The switch of gradient recording that matters: of a gradient or tensor that inference mode made, of the refused
    call itself, of what it was given."""
    facts = refusal.facts
    inference = made_in_inference(refusal)
    numbers = [*views(refusal), *(access.tensor for access in refusal.inputs)]
    if not refusal.inputs and (found := value(refusal)) is not None and found.tensor is not None:
        numbers.append(found.tensor)
    makers = [facts.first_use(n) for n in ([inference] if inference is not None else []) + numbers]
    switches = [facts.mode_switch(made.index) for made in makers if made is not None and made.mode != "grad"]
    if inference is None:
        switches.insert(0, facts.mode_switch(refusal.index))
    gradient = gradient_in_inference(refusal) if refusal.op.endswith("backward") else None
    if gradient is not None:
        switches.insert(0, facts.mode_switch(gradient[1].index))
    return next((switch for switch in switches if switch is not None), None)


def _left_by(refusal: RejectedCall) -> Region | None:
    """The transform that the exception itself has ended: the last one called from a line that it passed through."""
    stack = () if refusal.failure is None else refusal.failure.stack
    events = [e for e in refusal.facts.events if isinstance(e, Region) and e.entering and e.name.startswith("func.")]
    return next((e for e in reversed(events) if e.site in stack and e.index < refusal.index), None)


def called(refusal: RejectedCall) -> LabelledSite | None:
    """The call of a checkpoint, a custom Function, a transform or a library function that the failure went through."""
    facts = refusal.facts
    checkpoint = None if refusal.failure is None else last_recomputed_checkpoint(facts, refusal.failure)
    if checkpoint is not None:
        return LabelledSite(None, checkpoint.site, "the checkpoint is called here; backward runs its function again")
    if refusal.op.endswith(".apply"):
        return LabelledSite(None, refusal.site, f"{op_text(refusal.op)} is called here")
    transform = open_region(facts, refusal.index, "func.") or _left_by(refusal)
    if transform is not None:
        return LabelledSite(None, transform.site, f"`{transform.name}` is called here")
    above = [call for access in refusal.inputs for _, call in ancestry(facts, access.tensor, refusal.index)]
    before = [call for call in reversed(facts.calls) if call.index < refusal.index]
    call = next((c for c in (*above, *before) if c.op.endswith(".apply")), None)
    if call is not None:
        return LabelledSite(None, call.site, f"{op_text(call.op)} is called here")
    if refusal.op and not refusal.op.startswith(_OPS):
        return LabelledSite(None, refusal.site, f"{op_text(refusal.op)} is called here")
    return None


ROLES: dict[str, Callable[[RejectedCall], LabelledSite | None]] = {
    "mode_entered_here": mode,
    "grad_mode_off_here": mode,
    "called_here": called,
}
