import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

new = ("        top_logits, chosen = logits.topk(self.top_k, dim=-1)\n        gates = F.softmax(top_logits, dim=-1)\n",
       "        gates, chosen = F.softmax(logits, dim=-1).topk(self.top_k, dim=-1)\n")
bad, good = run("sparse_switch"), run("sparse_switch", new)
# the router of the program as written: never moves, its gradient is exactly zero
torch.manual_seed(3)
gb = bad["model"].moe.router.weight.grad.abs().max().item()
gg = good["model"].moe.router.weight.grad.abs().max().item()
gen = torch.manual_seed(3); init = bad["Model"]().moe.router.weight
still = torch.equal(init, bad["model"].moe.router.weight)
moved = (init - good["model"].moe.router.weight).norm().item()
print(gb, gg, still, moved, bad["test_mse"], good["test_mse"])
assert gb == 0.0 and gg > 1e-6 and still and moved > 0.1
assert good["test_mse"] < 0.8 * bad["test_mse"]
