import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import re
SNAP = ("optimizer = torch.optim.Adam", "start = model.ffn.router.weight.detach().clone()\noptimizer = torch.optim.Adam")
FIX = ("""        top_scores, chosen = scores.topk(self.top_k, dim=-1)
        weights = F.softmax(top_scores, dim=-1)
""", """        weights, chosen = F.softmax(scores, dim=-1).topk(self.top_k, dim=-1)
""")
out = []
for r in (run("expert_charlm", SNAP), run("expert_charlm", SNAP, FIX)):
    w = r["model"].ffn.router.weight
    out.append((rel(w.detach(), r["start"]), w.grad.abs().max().item(),
                float(re.search(r"held-out loss ([\d.]+)", r.output).group(1))))
print("(moved, grad, held-out):", out)
sys.exit(0 if out[0][:2] == (0.0, 0.0) and out[1][0] > 0.1 and out[1][1] > 0 else 1)
