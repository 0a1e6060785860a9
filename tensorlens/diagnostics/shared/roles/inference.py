"""Finds tensors and gradients made in inference mode. Such tensors have no version counter."""

from __future__ import annotations

from tensorlens.analysis.lineage import ancestry, leaves_above
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.records.model import Backward


def made_in_inference(rejected: RejectedCall) -> int | None:
    """Finds the inference tensor that is one of the call's tensors or that they were computed from.

    If a tensor of the call has a version, only an inference tensor with the same memory counts.
    """
    facts = rejected.facts
    for access in rejected.inputs:
        chain = [access.tensor, *(number for number, _ in ancestry(facts, access.tensor, rejected.index))]
        for number in dict.fromkeys(chain):
            made = facts.creator(number)
            same = facts.tensor(number).storage == facts.tensor(access.tensor).storage
            if made is not None and made.mode == "inference" and (access.version is None or same):
                return number
    return None


def gradient_in_inference(rejected: RejectedCall) -> tuple[int, Backward] | None:
    """Finds a leaf whose gradient an earlier pass made in inference mode, and that pass."""
    facts = rejected.facts
    leaves = {leaf for access in rejected.inputs for leaf in leaves_above(facts, access.tensor, rejected.index)}
    for backward in reversed(facts.backwards):
        switch = facts.mode_switch(backward.index)
        if backward.index >= rejected.index or switch is None or switch.mode != "inference":
            continue
        for gradient in backward.gradients:
            if gradient.tensor in leaves and gradient.before is None:
                return gradient.tensor, backward
    return None
