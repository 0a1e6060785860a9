import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("movement_prune")
assert a["net"].first.scores.grad is None and a["net"].second.scores.grad is None
assert abs(a["net"].first.scores.std().item() - 1e-3) < 1e-4   # still the initial noise
old = "        mask = top_fraction(self.scores, self.keep)\n"
new = old + "        mask = mask + self.scores - self.scores.detach()\n"
b = run("movement_prune", (old, new))
assert b["net"].first.scores.grad is not None
print("acc", a["acc"], b["acc"], "informative", a["informative"], b["informative"])
assert b["acc"] > a["acc"] + 0.04 and b["informative"] > a["informative"] + 0.2
