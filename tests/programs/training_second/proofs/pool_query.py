import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, run

a = run("pool_query")
b = run("pool_query", ("copy.deepcopy(template)", "regressor()"))
same = lambda r: [torch.equal(flat(r["ensemble"][0]), flat(m)) for m in r["ensemble"][1:]]
assert all(same(a)) and not any(same(b))
assert a["predict"](a["pool"]).var(0).max() < 1e-10 and b["predict"](b["pool"]).var(0).max() > 1e-2
print("proved: pool_query")
