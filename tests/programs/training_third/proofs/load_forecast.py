import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

junk = ("    loop = Loop(model)\n", "    y[96:] += 50\n    loop = Loop(model)\n")
fix = ("if i % self.accumulate == 0:", "if i % self.accumulate == 0 or i == len(self.batches(x, y)):")
a, aj = run("load_forecast"), run("load_forecast", junk)
b, bj = run("load_forecast", fix), run("load_forecast", junk, fix)
assert len(a["x"]) == 112 and a["loop"].updates == 15 and b["loop"].updates == 20
assert rel(flat(a["model"]), flat(aj["model"])) == 0.0
assert rel(flat(b["model"]), flat(bj["model"])) > 0.01
print("proved: load_forecast")
