import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

a = run("glyph_hints", capture=("main",)).locals["main"]
b = run("glyph_hints", ("output.detach()", "output"), capture=("main",)).locals["main"]
# the student's weights do not depend on the weight of the hint at all
z = run("glyph_hints", ("weight=4.0", "weight=0.0"), capture=("main",)).locals["main"]
zb = run("glyph_hints", ("output.detach()", "output"), ("weight=4.0", "weight=0.0"), capture=("main",)).locals["main"]
for n, r in (("as is", a), ("repaired", b), ("as is, weight 0", z)):
    print(n, r["hint"], r["student_acc"], r["teacher_acc"])
assert torch.equal(flat(a["student"]), flat(z["student"]))
assert not torch.allclose(flat(b["student"]), flat(zb["student"]))
assert b["hint"] < 0.8 * a["hint"]
