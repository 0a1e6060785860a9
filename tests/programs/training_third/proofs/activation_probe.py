import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

fix = ("            return self.store(name, output)", "            self.store(name, output)")
s = run("activation_probe", ("epochs=5", "epochs=0"))["model"]
a, b = run("activation_probe")["model"], run("activation_probe", fix)["model"]
for part in ("stem", "middle"):
    p, q, r = (flat(getattr(m, part)) for m in (a, b, s))
    assert all(w.grad is None for w in getattr(a, part).parameters())
    assert rel(p, r) == 0.0 and rel(q, r) > 0.02
print("proved: activation_probe")
