import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import flat, run
import torch

bad = run("amp_ctr")
line = '            nn.utils.clip_grad_norm_(model.parameters(), cfg["max_norm"])\n'
good = run("amp_ctr", (line, "            scaler.unscale_(optimizer)\n" + line))
torch.manual_seed(5)
start = flat(bad["WideAndDeep"](bad["SETTINGS"]))
moved = (flat(bad["model"]) - start).norm().item()
moved_good = (flat(good["model"]) - start).norm().item()
print(moved, moved_good, bad["final_auc"], good["final_auc"], bad["final_logloss"], good["final_logloss"])
assert moved_good > 20 * moved
assert good["final_auc"] > bad["final_auc"] + 0.1
