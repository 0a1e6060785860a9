import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("            nn.init.normal_(module.weight, std=0.5)\n",
       "            nn.init.normal_(module.weight, std=0.5)\n"
       "            if module.padding_idx is not None:\n"
       "                module.weight.data[module.padding_idx] = 0\n")
bad, good = run("basket_next"), run("basket_next", FIX)


def dependence(r):
    m, h = r["model"].eval(), r["test_history"]
    longer = torch.cat([h, torch.zeros(len(h), 10, dtype=h.dtype)], 1)
    with torch.no_grad():
        return (m(longer) - m(h)).abs().mean().item(), m.item_in.weight[0].norm().item()


d_bad, d_good = dependence(bad), dependence(good)
print("score change by 10 more pads, norm of the padding row:", d_bad, d_good)
print("hit, ndcg:", bad["hit"], bad["ndcg"], good["hit"], good["ndcg"])
print(bad.output, good.output)
assert d_bad[0] > 0.1 and d_bad[1] > 1 and d_good[0] < 1e-4 and d_good[1] == 0
assert good["hit"] > bad["hit"] + 0.02
