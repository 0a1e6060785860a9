import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

init = "            nn.init.normal_(module.weight, std=1 / math.sqrt(module.embedding_dim))\n"
fix = init + "            with torch.no_grad():\n                module.weight[module.padding_idx].zero_()\n"
bad, good = run("basket_retrieval"), run("basket_retrieval", (init, fix))
row_bad, row_good = (r["model"].item_emb.weight[0].norm().item() for r in (bad, good))
print("norm of the padding row", row_bad, row_good, "recall", bad["recall"], good["recall"])
# the pooled history of a short session depends on how much padding follows it
short = torch.tensor([[5, 9, 17]]); long = torch.tensor([[5, 9, 17] + [0] * 27])
moved = [(r["model"](short) - r["model"](long)).norm().item() for r in (bad, good)]
print("change of the user vector by padding", moved)
assert row_bad > 0.5 and row_good == 0
assert moved[0] > 0.5 and moved[1] < 1e-5
assert good["recall"] > bad["recall"] + 0.03
