import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, run

src = ("    model = MultiTaskRanker()\n", "    model = MultiTaskRanker()\n    model.start = [p.detach().clone() for p in model.shared.parameters()]\n")
fix = ("[p.grad for p in self.shared_params]", "[p.grad.clone() for p in self.shared_params]")
bad, good = run("ranking_pcgrad", src), run("ranking_pcgrad", src, fix)
moved = []
for r in (bad, good):
    m = r["model"]
    moved.append((flat(m.shared) - torch.cat([p.flatten() for p in m.start])).norm().item())
    print(r["aucs"], "conflicts", r["surgery"].conflicts, "shared bottom moved by", moved[-1])
assert moved[0] == 0 and moved[1] > 0.5
assert bad["surgery"].conflicts == 0 and good["surgery"].conflicts > 50
assert all(good["aucs"][t] > bad["aucs"][t] + 0.1 for t in bad["aucs"])
