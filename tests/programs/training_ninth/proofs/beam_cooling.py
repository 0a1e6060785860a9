import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

w = run("beam_cooling")
f = run("beam_cooling", ("balance.parameters(), lr=2e-2)", "balance.parameters(), lr=2e-2, maximize=True)"))
plain = run("beam_cooling", ("        balance_opt.step()\n", ""))
for r in (w, plain, f):
    print(r["weights"], "start+ends", sum(sum(h[2:]) for h in r["history"][-50:]) / 50, "loss", r["history"][-1][0], "error", r["error"])
assert all(v < 0.35 for v in w["weights"].values())
assert all(v > 1 for v in f["weights"].values())
# the reported loss is the lowest of the three, the solution is the worst
assert w["history"][-1][0] < min(plain["history"][-1][0], f["history"][-1][0])
assert w["error"] > plain["error"] and w["error"] > 1.3 * f["error"]
