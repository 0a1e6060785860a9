import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("return {key_of(n): p + shift", "return {n: p + shift")
a, b = run("user_offsets"), run("user_offsets", fix)
pa, pb = (list(r["trainer"].offsets.parameters()) for r in (a, b))
assert all(p.grad.abs().max() == 0 and p.abs().max() == 0 for p in pa)
assert all(p.abs().max() > 0.01 for p in pb)
assert sum(a["losses"]) > 1.3 * sum(b["losses"]), (a["losses"], b["losses"])
print("proved: user_offsets")
