import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

NAME = "shelf_recommender"
# decay of everything but the item table; the loss has no part in the difference, as the hook is the same
REPAIR = ("torch.optim.AdamW(model.parameters(), lr=0.03, weight_decay=0.1)",
          """torch.optim.AdamW([
        {"params": [p for p in model.parameters() if p is not model.item_vectors.weight]},
        {"params": [model.item_vectors.weight], "weight_decay": 0.0}], lr=0.03, weight_decay=0.1)""")

bad, good = run(NAME), run(NAME, REPAIR)


def rows(result):
    return result["model"].item_vectors.weight.detach()[:result["ESTABLISHED"]]


grad = bad["model"].item_vectors.weight.grad
assert (grad[:bad["ESTABLISHED"]] == 0).all() and grad[bad["ESTABLISHED"]:].norm() > 0   # the hook does its part
assert rel(rows(bad), bad["delivered"]) > 0.1                                             # yet the rows have moved
ratio = rows(bad) / bad["delivered"]
assert ratio.max() < 0.95 and ratio.std() < 1e-4                                          # all shrunk by one factor
assert (rows(good) == good["delivered"]).all()                                            # after the repair: bit for bit
assert rel(good["model"].item_vectors.weight.detach()[good["ESTABLISHED"]:],
           bad["model"].item_vectors.weight.detach()[bad["ESTABLISHED"]:]) > 0.01
print("proved: established rows times", ratio.mean().item())
