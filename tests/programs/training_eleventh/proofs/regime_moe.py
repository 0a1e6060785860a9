import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import rel, run

FIX = ("balance = self.experts * (load * load).sum()", "balance = self.experts * (load * probs.mean(0)).sum()")
OFF = ("BALANCE = 0.1", "BALANCE = 0.0")
bad, off, good = run("regime_moe"), run("regime_moe", OFF), run("regime_moe", FIX)
for r in (bad, off, good):
    print("test error", r["test_error"], "busiest", r["load"].max().item(), "in use", r["busy"])
x, y = bad["make_batch"](64)
grad = [r["model"].router(x)[3].requires_grad for r in (bad, good)]
same = (bad["model"].router.score.weight == off["model"].router.score.weight).all().item()
print("balance term has a graph:", grad, "weights equal without the term:", same)
assert grad == [False, True] and same
assert good["load"].max() < 0.7 * bad["load"].max()
assert good["test_error"] < 0.85 * bad["test_error"]
