import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

repair = ("self.stored = [p.detach() for", "self.stored = [p.detach().clone() for")
short = ("STEPS = 300", "STEPS = 25")


def evaluate(*edits):
    r = run("spiral_denoiser", short, *edits)
    model, average = r["model"], r["average"]
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
    before, shadow = flat(model).clone(), torch.cat([s.flatten() for s in average.shadow])
    with average.averaged():
        shared = all(c.data_ptr() == p.data_ptr() for c, p in zip(average.stored, model.parameters()))
        assert torch.equal(flat(model), shadow)
    return shared, before, flat(model), shadow


shared, before, after, shadow = evaluate()
assert shared and torch.equal(after, shadow) and rel(after, before) > 0.1
shared, before, after, shadow = evaluate(repair)
assert not shared and torch.equal(after, before)

full, full_repaired = run("spiral_denoiser"), run("spiral_denoiser", repair)
never = run("spiral_denoiser", ("step % EVAL_EVERY == 0", "step == STEPS"))
assert full["history"][-1] > full_repaired["history"][-1] + 0.06
assert abs(never["history"][-1] - full_repaired["history"][-1]) < 1e-6  # a correct evaluation leaves training alone
assert abs(never["history"][-1] - full["history"][-1]) > 0.06
