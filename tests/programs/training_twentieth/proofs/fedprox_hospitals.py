import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

fix = ("[p.detach() for p in self.model.parameters()]", "[p.detach().clone() for p in self.model.parameters()]")
no_mu = ("LR, MU = 8, 4, 0.1, 0.5", "LR, MU = 8, 4, 0.1, 0.0")


def end(*edits):
    r = run("fedprox_hospitals", *edits, capture=("main",)).locals["main"]
    return flat(r["server"]), r["drift"], r["loss"]


bad, bad0, good, good0 = end(), end(no_mu), end(fix), end(fix, no_mu)
print("as written: change of server weights by mu", rel(bad[0], bad0[0]), "drift", bad[1], "loss", bad[2])
print("repaired:   change of server weights by mu", rel(good[0], good0[0]), "drift", good[1], "loss", good[2])
ok = rel(bad[0], bad0[0]) < 1e-7 and rel(good[0], good0[0]) > 0.1 and good[1] < 0.5 * bad[1] and good[2] < bad[2] - 0.02
sys.exit(0 if ok else 1)
