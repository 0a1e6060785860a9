import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch, torch.nn.functional as F
from proofkit import run, flat, flat_grad, rel
N = "telescope_microbatch"
clip = "        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)\n"
fix = (clip, "")
fix2 = ("        self.optimizer.step()\n", clip + "        self.optimizer.step()\n")
def accumulated(*edits):
    r = run(N, *edits, as_main=False)
    torch.manual_seed(5)
    data = r["make_images"]()
    t = r["Trainer"](r["StarNet"]())
    x, y = data.tensors[0][:32], data.tensors[1][:32]
    full = torch.cat([g.flatten() for g in torch.autograd.grad(F.mse_loss(t.model(x), y), list(t.model.parameters()))])
    full = full * min(1.0, t.max_norm / full.norm())
    kept = []
    t.optimizer.register_step_pre_hook(lambda *a: kept.append(flat_grad(t.model).clone()))
    for i in range(0, 32, 8):
        t.backward(F.mse_loss(t.model(x[i:i + 8]), y[i:i + 8]))
        t.maybe_step()
    return rel(kept[0], full)
assert accumulated(fix, fix2) < 1e-3 and accumulated() > 0.03, (accumulated(fix, fix2), accumulated())
x = rel(flat(run(N)["trainer"].model), flat(run(N, fix, fix2)["trainer"].model))
assert x > 1e-2, x
print(f"proved: {N}")
