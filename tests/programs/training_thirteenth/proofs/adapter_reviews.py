import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import re
SNAP = ("    p.requires_grad_(False)\n", "    p.requires_grad_(False)\nstart = model.mix.weight.detach().clone()\n")
FIX = ("            self.weight.data += self.delta().data\n",
       "            if not self.folded:\n                self.weight.data += self.delta().data\n")
bad, good = run("adapter_reviews", SNAP), run("adapter_reviews", SNAP, FIX)
res = []
for r in (bad, good):
    t = float(re.search(r"test: loss ([\d.]+)", r.output).group(1))
    m = r["model"]; m.train()
    drift = rel(m.mix.weight, r["start"])
    res.append((t, drift))
print(res)
sys.exit(0 if res[0][0] > res[1][0] + 0.1 and res[0][1] > 0.05 and res[1][1] < 1e-4 else 1)
