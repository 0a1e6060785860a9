import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
REBIND = ("lr=scheduler.get_last_lr()[0])\n",
          "lr=scheduler.get_last_lr()[0])\n            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR("
          "optimizer, T_max=ADAPT_STEPS - UNFREEZE_AT)\n")
written = run("hourly_demand")
repaired = run("hourly_demand", REBIND)

live, shown = written["optimizer"].param_groups[0]["lr"], written["scheduler"].get_last_lr()[0]
print("rate in use", live, "rate shown", shown)
assert written["scheduler"].optimizer is not written["optimizer"]
assert live > 0.015 and shown < 1e-6
assert repaired["optimizer"].param_groups[0]["lr"] < 1e-6
tail = [sum(r["history"][-20:]) / 20 for r in (written, repaired)]
print("loss at the end", tail, "valid mae", written["final_error"], repaired["final_error"])
assert tail[1] < 0.95 * tail[0] and repaired["final_error"] < written["final_error"]

# one more step at the end of the schedule still moves the net by the full rate
before = [flat(r["model"]) for r in (written, repaired)]
import torch
for r in (written, repaired):
    past, ahead = r["windows"](torch.randn(120, generator=torch.Generator().manual_seed(1)))
    r["train_step"](r["model"], r["optimizer"], past, ahead, torch.Generator().manual_seed(0))
moved = [(flat(r["model"]) - b).abs().max().item() for r, b in zip((written, repaired), before)]
assert moved[0] > 1e-3 and moved[1] < 1e-5, moved
