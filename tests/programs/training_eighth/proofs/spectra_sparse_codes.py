import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
old = "    def close(self):\n"
w = run("spectra_sparse_codes")
f = run("spectra_sparse_codes", (old, old + "        for handle in self.handles:\n            handle.remove()\n        self.handles.clear()\n"))
print(w.output, f.output)
def ratio(r):
    t, x = r["trainer"], r["held"]
    t.penalty.open()
    t.penalty.outputs.clear()
    t.model(x)
    n = len(t.penalty.outputs)
    got = t.penalty.take().item()
    h = t.model.encode[1](t.model.encode[0](x)).abs().mean() + t.model.encode(x).abs().mean()
    return n, got / (t.penalty.weight * h.item())
a, b = ratio(w), ratio(f)
print(a, b)
assert a[0] == 82 and a[1] > 40
assert b[0] == 2 and abs(b[1] - 1) < 1e-4
assert w["err"] > 1.3 * f["err"]
