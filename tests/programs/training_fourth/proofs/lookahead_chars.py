import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
b = run("lookahead_chars", capture=("main",)).locals["main"]
g = run("lookahead_chars", ("p.data = slow", "p.data.copy_(slow)"), capture=("main",)).locals["main"]
# inner optimizer with one single interpolation, after step k: the wrong run equals it exactly
one = run("lookahead_chars", ("if self.count % self.k == 0", "if self.count == self.k"), ("p.data = slow", "p.data.copy_(slow)"), capture=("main",)).locals["main"]
print("test loss", b["average"], "repaired", g["average"])
o = b["optimizer"]
assert o.moved == 0.0 and g["optimizer"].moved > 0 and all(p.data_ptr() == s.data_ptr() for p, s in zip(o.params, o.slow))
assert torch.equal(flat(b["model"]), flat(one["model"]))
assert g["average"] < 0.9 * b["average"]
