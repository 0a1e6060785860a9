import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("        f_loss = F.mse_loss(f, forces[train][idx])", "        f_loss = F.mse_loss(f * std, forces[train][idx])")
FIX2 = ("(f - forces[test])", "(f * std - forces[test])")
bad, good = run("krypton_cluster"), run("krypton_cluster", FIX, FIX2)

# perfect energies must give perfect forces: put the true standardised energy in place of the network
def oracle(pos):
    i, j = torch.triu_indices(pos.shape[1], pos.shape[1], offset=1)
    d = (pos[:, i] - pos[:, j]).norm(dim=-1)
    e = (2.0 * (1 - torch.exp(-1.2 * (d - 1.3))) ** 2).sum(1) + 0.3 * (pos ** 2).sum((1, 2))
    return (e - bad["mean"]) / bad["std"]

e, f = bad["energy_and_forces"](oracle, bad["pos"])
e_err, f_err, f_fixed = rel(e, bad["target"]), rel(f, bad["forces"]), rel(f * bad["std"], bad["forces"])
print("the true potential: energy error", e_err, "force error as compared", f_err, "repaired", f_fixed)
print("energy mae", bad["e_mae"], good["e_mae"], "force mae", bad["f_mae"], good["f_mae"])
assert e_err < 1e-5 and f_err > 0.5 and f_fixed < 1e-5
assert bad["e_mae"] > 5 * good["e_mae"] and bad["f_mae"] > 1.5 * good["f_mae"]
