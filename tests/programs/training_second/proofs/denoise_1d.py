import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import flat, rel, run

a = run("denoise_1d", capture=["main"]).locals["main"]
b = run("denoise_1d", ("avg.lerp_(p, self.decay)", "avg.lerp_(p, 1 - self.decay)"), capture=["main"]).locals["main"]
gap = lambda r: rel(flat(r["averager"].module), flat(r["model"]))
assert rel(flat(a["model"]), flat(b["model"])) == 0
assert gap(a) < 1e-3 and gap(b) > 100 * gap(a), (gap(a), gap(b))
print("proved: denoise_1d")
