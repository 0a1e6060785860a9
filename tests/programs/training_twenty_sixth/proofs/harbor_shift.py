import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

LINE = '    optimizer.load_state_dict(checkpoint["optimizer"])\n'
FIX = (LINE, LINE + '    for group in optimizer.param_groups:\n        group["lr"] = args.finetune_lr\n')
bad, good = run("harbor_shift"), run("harbor_shift", FIX)
lr_bad, lr_good = (r["optimizer"].param_groups[0]["lr"] for r in (bad, good))
print("lr", lr_bad, lr_good, "rmse", bad["before"], bad["after"], good["after"])
assert bad["before"] == good["before"]
assert lr_bad < 1e-5 and lr_good == 1e-3                 # the requested rate is replaced by the end of the old cosine
assert good["after"] < 0.5 * good["before"]
assert bad["after"] > 0.9 * bad["before"]
