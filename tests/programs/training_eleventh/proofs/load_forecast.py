import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

fix = ("self.backup = {k: v.detach() for", "self.backup = {k: v.detach().clone() for")
a, b = run("load_forecast"), run("load_forecast", fix)
print(a.output, b.output)
for r, kept in ((a, False), (b, True)):
    m, avg = r["model"], r["average"]
    with torch.no_grad():
        for p in m.parameters():
            p.add_(0.01)
    before = flat(m).clone()
    avg.swap_in(m); avg.swap_out(m)
    print("raw weights come back:", torch.equal(before, flat(m)), "largest change", (flat(m) - before).abs().max().item())
    assert torch.equal(before, flat(m)) == kept
print("val MAE", a["val_mae"], b["val_mae"], "train", a["total"], b["total"])
assert b["val_mae"] < 0.95 * a["val_mae"] and b["total"] < 0.95 * a["total"]
