import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

a = run("vocoder_gan")
b = run("vocoder_gan", ("F.l1_loss(f.detach(), r)", "F.l1_loss(f, r.detach())"))
c = run("vocoder_gan", ("LAMBDA_FM = 8.0", "LAMBDA_FM = 0.0"))
print("tails d, fm, spec:", a["tail"].tolist(), b["tail"].tolist(), "weight 0:", c["tail"].tolist())


def fm_gradient(m):
    real = m["synth_notes"](4)
    fake = m["gen"](m["log_spec"](real))
    loss = m["feature_matching"](m["disc"](real)[1], m["disc"](fake)[1])
    grads = torch.autograd.grad(loss, list(m["gen"].parameters()), allow_unused=True)
    return sum(g.abs().sum().item() for g in grads if g is not None)


print(fm_gradient(a), fm_gradient(b))
assert fm_gradient(a) == 0 and fm_gradient(b) > 0
# the weighted term changes nothing at all in the generator: the weight could be zero
assert all(torch.equal(p, q) for p, q in zip(a["gen"].parameters(), c["gen"].parameters()))
assert b["tail"][1] < a["tail"][1] * 0.9
