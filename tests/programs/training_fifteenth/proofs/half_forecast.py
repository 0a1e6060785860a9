import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

norms = []
step = torch.optim.SGD.step


def spy(self, *args, **kw):
    norms.append(torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm().item())
    return step(self, *args, **kw)


torch.optim.SGD.step = spy
a = run("half_forecast", capture=("main",)).locals["main"]
na = norms[:]
norms.clear()
b = run("half_forecast",
        ("            nn.utils.clip_grad_norm_(params, CLIP)\n", ""),
        ("            g.div_(self.value)\n", "            g.div_(self.value)\n        nn.utils.clip_grad_norm_(params, CLIP)\n"),
        capture=("main",)).locals["main"]
print("as is: rmse", a["rmse"], "largest norm at step", max(na))
print("repaired: rmse", b["rmse"], "largest norm at step", max(norms), "naive", a["naive"])
assert max(na) < 1.01 / 1024
assert max(norms) > 0.1
assert a["rmse"] > 1.5 * b["rmse"]
