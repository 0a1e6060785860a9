import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)
FIX = ("pos, retain_graph=True)", "pos, create_graph=True)")
WEIGHT = ("force_weight: float = 1.0", "force_weight: float = 0.0")
bad, good, none = run("argon_springs"), run("argon_springs", FIX), run("argon_springs", WEIGHT)
print("test force mae: as written, repaired, force loss off:", bad["force_mae"], good["force_mae"], none["force_mae"])
print(bad.output, good.output)
flat = lambda m: torch.cat([p.detach().flatten() for p in m.parameters()])
assert torch.equal(flat(bad["model"]), flat(none["model"]))  # the force term changes nothing at all
assert not bad["model"](bad["test"][0])[1].requires_grad and good["model"](good["test"][0])[1].requires_grad
assert bad["force_mae"] > 1.5 * good["force_mae"]
