import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

RECORD = ("    return (model(schedule.diffuse(x, t, noise), t)", "    SEEN.append(noise[:4].clone()) if model.training else None\n    return (model(schedule.diffuse(x, t, noise), t)")
FIX = ("    torch.manual_seed(seed)\n    loss = denoising_loss(model, schedule, x).item()\n",
       "    with torch.random.fork_rng():\n        torch.manual_seed(seed)\n        loss = denoising_loss(model, schedule, x).item()\n")
seen_bad, seen_good = [], []
bad = run("lagoon_denoiser", RECORD, inject={"SEEN": seen_bad})
good = run("lagoon_denoiser", RECORD, FIX, inject={"SEEN": seen_good})


def distinct(seen):
    return len({tuple(s.flatten().tolist()) for s in seen})


print("batches", len(seen_bad), "distinct draws", distinct(seen_bad), distinct(seen_good))
assert len(seen_bad) == len(seen_good)
assert distinct(seen_good) == len(seen_good)
assert distinct(seen_bad) <= 8


def held_out(r):
    torch.manual_seed(99)
    with torch.no_grad():
        x = r["ring"](20000, r["cfg"].blobs)
        return r["denoising_loss"](r["model"].eval(), r["schedule"], x).item()


a, b = held_out(bad), held_out(good)
print("held-out loss", a, b)
assert a > 1.15 * b
