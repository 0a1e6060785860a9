import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("reach_replay")
s, _, _, s2 = bad["memory"].sample(64)
print("distinct states in a sample:", torch.unique(s, dim=0).shape[0], "s == s2:", torch.equal(s, s2))
good = run("reach_replay", ("return self.obs\n", "return self.obs.copy()\n"), ("return self.obs, reward", "return self.obs.copy(), reward"))
gs, _, _, gs2 = good["memory"].sample(64)
print("repaired distinct:", torch.unique(gs, dim=0).shape[0], "returns", bad["final"], good["final"])
assert torch.unique(s, dim=0).shape[0] == 1 and torch.equal(s, s2)
assert torch.unique(gs, dim=0).shape[0] > 50 and not torch.equal(gs, gs2)
assert good["final"] > bad["final"] + 5
