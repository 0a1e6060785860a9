import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("meta_waves")
b = run("meta_waves", ("F.softplus(rate).item()", "F.softplus(rate)"))
assert all(r.grad is None and r.item() == -4.0 for r in a["rates"].values())
assert all(r.grad is not None and r.item() != -4.0 for r in b["rates"].values())
last = lambda r: float(r.output.split()[-1])
assert last(b) < last(a), (last(a), last(b))
print("proved: meta_waves")
