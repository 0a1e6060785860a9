import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

sys.argv = sys.argv[:1]
FIX = ("torch.autograd.grad(energy.sum(), pos, retain_graph=True)", "torch.autograd.grad(energy.sum(), pos, create_graph=True)")
NOFORCE = ("args.w_force * f_loss", "0.0 * f_loss")
bad, good = run("argon_droplet"), run("argon_droplet", FIX)
plain = run("argon_droplet", NOFORCE)
for r in (bad, good):
    r["pos"] = r["make_clusters"](4, r["torch"].Generator().manual_seed(1)).pos
_, f = bad["energy_and_forces"](bad["model"], bad["pos"])
assert not f.requires_grad
_, f = good["energy_and_forces"](good["model"], good["pos"])
assert f.requires_grad
for a, b in zip(bad["model"].parameters(), plain["model"].parameters()):
    assert a.equal(b)  # the force term changes nothing at all
print("force rmse", bad["f_err"], good["f_err"])
assert bad["f_err"] > 2 * good["f_err"]
