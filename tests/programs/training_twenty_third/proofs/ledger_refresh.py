import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

torch.set_num_threads(1)
old = '    run_plan(REFRESH, model, optimizer, None, data)\n'
new = '    for group in optimizer.param_groups:\n        group["lr"] = REFRESH.lr\n' + old
bad, good = run("ledger_refresh", capture=("main",)), run("ledger_refresh", (old, new), capture=("main",))
b, g = bad.locals["main"], good.locals["main"]
lr_b, lr_g = (m["optimizer"].param_groups[0]["lr"] for m in (b, g))
move_b, move_g = (rel(flat(m["model"]), flat(m["last_month"])) for m in (b, g))
print("lr", lr_b, lr_g, "moved", move_b, move_g, "before", b["before"], "after", b["after"], g["after"])
assert rel(flat(b["last_month"]), flat(g["last_month"])) == 0.0          # the same start
assert lr_g == bad["REFRESH"].lr and lr_b < 0.02 * bad["REFRESH"].lr
assert move_g > 10 * move_b and g["after"][0] < b["after"][0] - 0.1 and g["after"][1] > b["after"][1] + 0.05
