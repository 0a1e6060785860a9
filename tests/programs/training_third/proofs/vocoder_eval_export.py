import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
N = "vocoder_eval_export"
bad = run(N)
good = run(N, ("    model.set_weight_norm(False)\n", ""), ("    model.set_weight_norm(True)\n", ""))
names = lambda r: {n for n, p in r["model"].named_parameters() if in_optimizer(p, r["optimizer"])}
assert len(names(good)) == 24 and len(names(bad)) == 8 and all(n.endswith("bias") for n in names(bad)), names(bad)
assert bad["scores"][0] == good["scores"][0] or abs(bad["scores"][0] - good["scores"][0]) < 1e-4
assert bad["scores"][-1] > good["scores"][-1] * 1.05, (bad["scores"], good["scores"])
print(f"proved: {N}")
