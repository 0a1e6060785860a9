import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("log_q[ads].unsqueeze(1)", "log_q[ads].unsqueeze(0)")
OFF = ("    logits = logits - log_q[ads].unsqueeze(1)\n", "")
wrong, right, off = run("advert_towers"), run("advert_towers", FIX), run("advert_towers", OFF)
print("recall wrong/right/without correction", wrong["recall"], right["recall"], off["recall"])

# the correction does not change the loss at all
m = wrong["model"]
u, a = torch.arange(64), torch.randint(0, 400, (64,))
q = torch.randn(400) * 3
l1 = wrong["in_batch_loss"](m, u, a, q).item()
l0 = wrong["in_batch_loss"](m, u, a, torch.zeros(400)).item()
r1 = right["in_batch_loss"](m, u, a, q).item()
print("loss with / without / repaired", l1, l0, r1)
assert abs(l1 - l0) < 1e-4 and abs(r1 - l0) > 0.1
assert right["recall"] > wrong["recall"] * 1.1
assert abs(off["recall"] - wrong["recall"]) < 0.02
