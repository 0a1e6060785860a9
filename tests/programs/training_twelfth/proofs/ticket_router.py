import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("ticket_router")
good = run("ticket_router", ("norm_first=True)", "norm_first=True, batch_first=True)"))
print(bad.output, good.output)
x, _ = bad["make_tickets"](64, torch.Generator().manual_seed(1))
for r in (bad, good):
    r["model"].eval()
with torch.no_grad():
    d_bad = (bad["model"](x)[:1] - bad["model"](x[:1])).abs().max().item()
    d_good = (good["model"](x)[:1] - good["model"](x[:1])).abs().max().item()
print("alone vs in batch:", d_bad, d_good, "acc", bad["test_acc"], good["test_acc"])
assert d_bad > 0.05 and d_good < 1e-4
assert good["test_acc"] > bad["test_acc"] + 0.1
