import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

edit = ("energy[owner] += contribution", "energy.index_add_(0, owner, contribution)")
wrong, fixed = run("molecule_energy"), run("molecule_energy", edit)
print("test error", wrong["test_error"], "repaired", fixed["test_error"])


def reached(r):
    """Share of atoms whose contribution receives a gradient, in one molecule of six unbonded atoms."""
    net, got = r["net"], []
    hook = net.atomic.register_forward_hook(lambda m, i, o: got.append(o.detach().clone()))
    energy = net(torch.tensor([0, 1, 2, 3, 0, 1]), torch.zeros(2, 0, dtype=torch.long), torch.zeros(6, dtype=torch.long), 1)
    hook.remove()
    c = got[0].squeeze(-1)
    return energy.item(), c[-1].item(), c.sum().item()


e, last, total = reached(wrong)
e1, last1, total1 = reached(fixed)
print(f"wrong: energy {e:.4f} last atom {last:.4f} sum {total:.4f};  repaired: energy {e1:.4f} last atom {last1:.4f} sum {total1:.4f}")
ok = abs(e - last) < 1e-5 and abs(e - total) > 1e-2 and abs(e1 - total1) < 1e-4 and fixed["test_error"] < 0.6 * wrong["test_error"]
sys.exit(0 if ok else 1)
