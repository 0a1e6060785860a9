import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("        self.net.train()\n",
       "        self.net.train()\n        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3)\n")
FIX2 = ("                self.optimizer.step()\n",
        "                self.optimizer.step()\n"
        "                if pruner is not None:\n"
        "                    [p.data.mul_(m) for p, m in zip(pruner.weights, pruner.masks)]\n")

wrong = run("loan_slimming")
fresh = run("loan_slimming", FIX)
again = run("loan_slimming", FIX2)


def nonzero(program):
    return sum((p != 0).sum().item() for p in program["pruner"].weights)


def masked_change(program):
    """Largest change of the outputs when the pruned weights are put to zero, as storage of the kept ones would do."""
    net, pruner = program["net"], program["pruner"]
    x = torch.randn(500, program["FIELDS"], generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        before = net(x)
        for p, m in zip(pruner.weights, pruner.masks):
            p.mul_(m)
        return (net(x) - before).abs().max().item()


kept, total = wrong["pruner"].kept(), wrong["pruner"].total()
print("kept by the masks", kept, "of", total, "| nonzero", nonzero(wrong), nonzero(fresh), nonzero(again))
for p, m in zip(wrong["pruner"].weights, wrong["pruner"].masks):
    assert (p.grad * (1 - m)).abs().max() == 0  # gradients of pruned weights are zero ...
assert nonzero(wrong) > 3 * kept  # ... and the pruned weights are not
assert nonzero(fresh) <= fresh["pruner"].kept() and nonzero(again) <= again["pruner"].kept()

change = masked_change(wrong)
print("change of outputs by masking", change, masked_change(fresh), masked_change(again))
assert change > 0.1 and masked_change(fresh) == 0 and masked_change(again) == 0
