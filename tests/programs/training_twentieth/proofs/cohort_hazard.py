import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("return self.net(x)\n", "return self.net(x).squeeze(1)\n")
fix2 = ("model(x).squeeze(1)", "model(x)")
bad = run("cohort_hazard", capture=("partial_likelihood",))
good = run("cohort_hazard", fix, fix2, capture=("partial_likelihood",))
shapes = [tuple(r.locals["partial_likelihood"]["contribution"].shape) for r in (bad, good)]
print("shape of the contributions:", shapes, " scores:", bad["scores"], good["scores"])
assert shapes == [(150, 150), (150,)]
assert good["scores"][0] > bad["scores"][0] + 0.1
assert good["scores"][1] > bad["scores"][1] + 0.5
