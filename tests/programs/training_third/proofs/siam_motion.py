import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

none = ("for e in range(6)", "for e in range(0)")
fix = ("alignment(p1, z2) + alignment(p2, z1)", "alignment(z2, p1) + alignment(z1, p2)")
s = run("siam_motion", none)["trainer"].model.predictor
a = run("siam_motion")["trainer"].model.predictor
b = run("siam_motion", fix)["trainer"].model.predictor
assert all(p.grad is None for p in a.parameters()) and rel(flat(a), flat(s)) == 0.0
assert all(p.grad is not None for p in b.parameters()) and rel(flat(b), flat(s)) > 0.01
print("proved: siam_motion")
