import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

old = "            optimizer = torch.optim.Adam(model.parameters(), lr=PEAK_LR)\n"
a = run("accent_finetune")
b = run("accent_finetune", (old, old + "            scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: half_cosine(s + STAGE1))\n"))
for r in (a, b):
    print("lr used at the end", r["optimizer"].param_groups[0]["lr"], "printed", r["scheduler"].get_last_lr()[0], "acc", r["acc"], "nll", r["nll"])
assert a["optimizer"].param_groups[0]["lr"] == a["PEAK_LR"]  # never decayed in the whole second stage
assert a["scheduler"].get_last_lr()[0] < 1e-6  # though the log says that it is
assert b["optimizer"].param_groups[0]["lr"] < 1e-6
assert b["nll"] < a["nll"] * 0.8
