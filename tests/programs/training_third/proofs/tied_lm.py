import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel

FIX = ("nn.Parameter(self.embed.weight)", "self.embed.weight")
a, b = run("tied_lm"), run("tied_lm", FIX)
same = [p for p in a["model"].parameters() if p.data_ptr() == a["model"].embed.weight.data_ptr()]
assert len(same) == 2 and same[0] is not same[1]
assert sum(p.data_ptr() == b["model"].embed.weight.data_ptr() for p in b["model"].parameters()) == 1
one = ("steps=40", "steps=1")
init = ("steps=40", "steps=0")
w0 = run("tied_lm", init)["model"].embed.weight.detach()
da = run("tied_lm", one)["model"].embed.weight.detach() - w0
db = run("tied_lm", FIX, one)["model"].embed.weight.detach() - w0
assert da.norm() > 1.2 * db.norm(), (da.norm(), db.norm())
assert rel(a["model"].embed.weight.detach(), b["model"].embed.weight.detach()) > 0.05
print("proved: tied_lm")
