import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import math
import torch

torch.set_num_threads(1)
REPAIR = ("            prediction.backward(retain_graph=True)",
          "            self.net.zero_grad()\n            prediction.backward(retain_graph=True)")

written = run("arm_confidence")
repaired = run("arm_confidence", REPAIR)

def formula(program, contexts):
    net = program["learner"].net
    rows = []
    for c in contexts:
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(net(c), list(net.parameters()))]))
    return torch.stack(rows) / math.sqrt(net.inner.out_features)

for program, right in ((written, False), (repaired, True)):
    torch.manual_seed(3)
    contexts = program["bandit"].contexts()
    _, got = program["learner"].features(contexts)
    want = formula(program, contexts)
    assert rel(got[0], want[0]) < 1e-5
    for k in range(1, program["ARMS"]):
        assert (rel(got[k], want[k]) < 1e-5) == right
        if not right:
            assert rel(got[k], want[:k + 1].sum(0)) < 1e-5  # the sum over the arms before

# The contexts of the arms have one distribution, but the width grows with the number of the arm.
print(written.output, written["spreads"], written["counts"]); print(repaired.output, repaired["spreads"], repaired["counts"])
w, r = written["spreads"], repaired["spreads"]
assert (w[1:] > w[:-1]).all() and w[-1] > 1.5 * w[0]
assert r.max() < 1.1 * r.min()
assert written["counts"][-1] > 3 * written["counts"][0]
