import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel
import contextlib, io
import torch
N = "melody_irnn"
def norms(*edits):
    r = run(N, *edits, as_main=False)
    seen = []
    init = r["Trainer"].__init__
    def hooked(self, *a):
        init(self, *a)
        self.optimizer.register_step_pre_hook(lambda o, *_: seen.append(torch.stack([p.grad.norm() for p in o.param_groups[0]["params"]]).norm().item()))
    r["Trainer"].__init__ = hooked
    with contextlib.redirect_stdout(io.StringIO()):
        t, _ = r["main"]()
    return seen, t.model
fix = ("filter(lambda p: p.requires_grad, model.parameters())", "[p for p in model.parameters() if p.requires_grad]")
bad, m1 = norms()
good, m2 = norms(fix)
assert len(bad) == 50 and max(good) <= 0.5001 and max(bad) > 1.0, (max(bad), max(good))
assert sum(b > 0.55 for b in bad) > 5, bad
assert rel(flat(m1), flat(m2)) > 0.01
print(f"proved: {N}")
