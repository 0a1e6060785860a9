import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("self.precision(task) * value", "torch.exp(-self.log_var[task]) * value")
a, b = run("crop_multitask"), run("crop_multitask", fix)
ga = [p.grad.item() for p in a["balance"].parameters()]
gb = [p.grad.item() for p in b["balance"].parameters()]
assert ga == [1.0, 1.0, 1.0] and all(g != 1.0 for g in gb)
va, vb = ({k: v.item() for k, v in r["balance"].log_var.items()} for r in (a, b))
assert max(va.values()) - min(va.values()) < 1e-5
assert vb["moisture"] > 0.3 and vb["yield"] < -0.3, vb
print("proved: crop_multitask")
