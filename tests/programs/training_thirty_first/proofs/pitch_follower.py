import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

NAME = "pitch_follower"
REPAIR = ("filter(lambda p: p.requires_grad, model.parameters())", "[p for p in model.parameters() if p.requires_grad]")


def norms(*edits):
    seen = []

    def record(optimizer, args, kwargs):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"]]
        assert len(grads) == 6 and all(g is not None for g in grads)
        seen.append(torch.stack([g.norm() for g in grads]).norm().item())

    handle = register_optimizer_step_pre_hook(record)
    try:
        space = run(NAME, *edits)
    finally:
        handle.remove()
    return space, seen


space, written = norms()
fixed, repaired = norms(REPAIR)
limit = space["MAX_NORM"]
above = sum(n > 1.5 * limit for n in written)
print("as written: steps", len(written), "above the limit", above, "largest", max(written), "| repaired largest", max(repaired))
assert above > 0.5 * len(written) and max(written) > 5 * limit
assert max(repaired) <= limit * 1.001
assert rel(flat(space["follower"]), flat(fixed["follower"])) > 1e-2
