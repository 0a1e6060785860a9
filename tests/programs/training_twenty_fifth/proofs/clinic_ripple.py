import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
from proofkit import flat
MU = "\"--mu\", type=float, default=1.0"
FIX = ("[p.detach() for p in net.parameters()]", "[p.detach().clone() for p in net.parameters()]")
bad = run("clinic_ripple", capture=("local_train",))
nomu = run("clinic_ripple", (MU, MU.replace("1.0", "0.0")))
good = run("clinic_ripple", FIX, capture=("local_train",))
assert torch.equal(flat(bad["server"]), flat(nomu["server"]))  # mu has no effect at all
assert bad.locals["local_train"]["prox"].item() == 0.0
assert good.locals["local_train"]["prox"].item() > 1e-3
b, g = sum(bad["drifts"]), sum(good["drifts"])
print(b, g, bad["final_acc"], good["final_acc"])
assert g < 0.7 * b
