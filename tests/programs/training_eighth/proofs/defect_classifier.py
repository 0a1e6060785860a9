import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad
w = run("defect_classifier")
f = run("defect_classifier", ("weights = filter(lambda p: p.requires_grad, model.parameters())", "weights = [p for p in model.parameters() if p.requires_grad]"))
print(w.output, f.output)
def used_norm(r):
    s, (x, y) = r["session"], r["test"]
    norms, step = [], s.optimizer.step
    def spy():
        norms.append(flat_grad(s.model).norm().item())
        return step()
    s.optimizer.step = spy
    for k in range(0, 192, 24):
        s.step(x[k:k + 24] * 8, y[k:k + 24].roll(1))
    return max(norms)
a, b = used_norm(w), used_norm(f)
print(a, b)
assert list(w["session"].weights) == [] and len(f["session"].weights) > 0
assert a > 2.0 and b <= 0.5001
