import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

wrong = run("ward_hazard", capture=("partial_likelihood",))
fixed = run("ward_hazard", ("net(x[rows]), time[rows]", "net(x[rows]).squeeze(-1), time[rows]"), capture=("partial_likelihood",))
shape = tuple(wrong.locals["partial_likelihood"]["contribution"].shape)
print("contribution", shape, "repaired", tuple(fixed.locals["partial_likelihood"]["contribution"].shape))
print("held-out c-index", wrong["final_c"], "repaired", fixed["final_c"])
# the loss no longer depends on who died, only on how many
loss = wrong["partial_likelihood"]
torch.manual_seed(0)
r, t, e = torch.randn(50, 1), torch.rand(50), (torch.rand(50) < 0.5).float()
a, b = loss(r, t, e).item(), loss(r, t, e[torch.randperm(50)]).item()
a1, b1 = loss(r[:, 0], t, e).item(), loss(r[:, 0], t, e[torch.randperm(50)]).item()
print("events shuffled:", a, b, "repaired", a1, b1)
ok = shape == (200, 200) and abs(a - b) < 1e-3 * abs(a) and abs(a1 - b1) > 1e-2 and fixed["final_c"] > wrong["final_c"] + 0.02
sys.exit(0 if ok else 1)
