import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

NAME = "knowledge_triples"
REPAIR = ("self.entities.weight = nn.Parameter(unit)", "self.entities.weight.data.copy_(unit)")
# the vectors right after the first projection
KEEP = ("        model.project_entities()\n",
        "        model.project_entities()\n        if epoch == 0:\n            start = model.entities.weight.detach().clone()\n")

bad = run(NAME, KEEP, capture=("main",))
weight, start = bad["model"].entities.weight, bad.locals["main"]["start"]
assert not in_optimizer(weight, bad["optimizer"])          # the optimizer has a tensor that is no longer the model's
assert in_optimizer(bad["model"].relations.weight, bad["optimizer"])
assert weight.grad is not None and weight.grad.norm() > 0  # it has a gradient that nobody uses
assert rel(weight.detach(), start) < 1e-5                  # and does not move (rounding of the normalisation apart)

good = run(NAME, KEEP, REPAIR, capture=("main",))
assert in_optimizer(good["model"].entities.weight, good["optimizer"])
assert rel(good["model"].entities.weight.detach(), good.locals["main"]["start"]) > 0.3
assert good["final_loss"] < 0.4 * bad["final_loss"]
assert good["final_ranks"].mean() < 0.7 * bad["final_ranks"].mean()
print("proved", bad["final_loss"], good["final_loss"], bad["final_ranks"].mean(), good["final_ranks"].mean())
