import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("current = self.theta.detach()\n", "current = self.theta.detach().clone()\n")


def repeats(chain):
    return (chain[1:] == chain[:-1]).all(1).float().mean().item()


bad = run("occupancy_hmc", capture=("step",))
good = run("occupancy_hmc", fix, capture=("step",))
for r in (bad, good):
    s = r["sampler"]
    print("acceptance", s.accepted / s.proposed, "repeated draws", repeats(r["chain"]), "sd", r["sd"])
ratio = (bad["sd"] / good["sd"])
print("ratio", ratio)
assert bad.locals["step"]["current"].data_ptr() == bad["sampler"].theta.data_ptr()
assert good.locals["step"]["current"].data_ptr() != good["sampler"].theta.data_ptr()
s = bad["sampler"]
assert s.accepted / s.proposed < 0.6 and repeats(bad["chain"]) == 0.0   # rejected moves are kept
assert repeats(good["chain"]) > 0.3
assert ratio.max() > 3
