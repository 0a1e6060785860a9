import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
from proofkit import flat

WATCH = ("        optimizer.step()\n        scheduler.step()",
         "        rates.append([g['lr'] for g in optimizer.param_groups])\n"
         "        optimizer.step()\n        scheduler.step()")
PEAKS = ("max_lr=HEAD_LR", "max_lr=[ENCODER_LR, HEAD_LR]")
bad_rates, good_rates = [], []
bad = run("orchard_finetune", WATCH, inject={"rates": bad_rates})
good = run("orchard_finetune", WATCH, PEAKS, inject={"rates": good_rates})
peak = lambda rates, group: max(r[group] for r in rates)
drift = lambda r: rel(flat(r["model"].encoder), flat(r["pretrained"]))
print(peak(bad_rates, 0), peak(good_rates, 0), drift(bad), drift(good), bad["error"], good["error"])
assert abs(peak(good_rates, 1) - peak(bad_rates, 1)) < 1e-9
assert peak(good_rates, 0) < 1.01 * good["ENCODER_LR"]
assert peak(bad_rates, 0) > 100 * bad["ENCODER_LR"]       # the encoder trains with the rate of the head
assert drift(bad) > 10 * drift(good)
assert good["error"] < bad["error"]
