import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, run

wrong = run("dqn_corridor", capture=["main"]).locals["main"]["agent"]
assert wrong.policy_net is wrong.target_net
fixed = run(
    "dqn_corridor",
    ("self.target_net = net.to(device)", "import copy; self.target_net = copy.deepcopy(net)"),
    capture=["main"],
).locals["main"]["agent"]
assert not torch.equal(flat(fixed.policy_net), flat(fixed.target_net))
print("proved: dqn_corridor")
