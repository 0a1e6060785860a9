import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

FIX = ("                lr=PEAK_LR, momentum=0.9, weight_decay=5e-4,\n            )\n",
       "                lr=PEAK_LR, momentum=0.9, weight_decay=5e-4,\n            )\n"
       "            scheduler = torch.optim.lr_scheduler.LambdaLR(\n"
       "                optimizer, lambda s: lr_factor(s + HEAD_STEPS))\n")
bad, good = run("patch_graph"), run("patch_graph", FIX)
for r in (bad, good):
    print("lr used at the end", r["optimizer"].param_groups[0]["lr"], "lr reported", r["scheduler"].get_last_lr(),
          "loss, acc std of tail", r["tail"].std(0).tolist(), "mean", r["tail"].mean(0).tolist())
print(bad.output, good.output)
assert bad["scheduler"].optimizer is not bad["optimizer"] and bad["optimizer"].param_groups[0]["lr"] == 0.05
assert bad["scheduler"].get_last_lr()[0] < 1e-4 and good["optimizer"].param_groups[0]["lr"] < 1e-4
assert bad["tail"][:, 1].std() > 2 * good["tail"][:, 1].std()
