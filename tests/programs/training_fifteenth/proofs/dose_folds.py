import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

a = run("dose_folds", capture=("main",))
s = a.locals["main"]["scores"]
b = run("dose_folds", ("model.children()", "model.modules()"), capture=("main",)).locals["main"]["scores"]
print("as is", s, sum(s) / 5)
print("repaired", b, sum(b) / 5)
assert sum(s[1:]) / 4 > sum(b[1:]) / 4 + 0.2

m = a.locals["main"]["model"]
enc, head = flat(m.encoder).clone(), flat(m.head).clone()
a["reset"](m)
assert torch.equal(enc, flat(m.encoder)) and not torch.equal(head, flat(m.head))
print("reset() changes head only: encoder untouched")
