import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("lichen_distill")
good = run("lichen_distill", ("nn.ReLU(inplace=True)", "nn.ReLU()"))
also = run("lichen_distill", ("self.value = output", "self.value = output.clone()"))


def tapped_vs_true(r):
    """The tapped feature against the output of conv + BN computed by hand."""
    teacher, x = r["teacher"], r["train"][0][:64].clone()
    with torch.no_grad():
        teacher(x)
        tapped = r["t_tap"].value.clone()
        true = teacher.stages[1][1](teacher.stages[1][0](teacher.stages[0](x)))
    return rel(tapped, true), (tapped < 0).float().mean().item()


def gradient(r, student_state):
    """Gradient of the feature loss at the same student weights."""
    r["student"].load_state_dict(student_state)
    r["student"].train().zero_grad()
    x = r["train"][0][:128].clone()
    r["student"](x)
    r["feature_loss"](x).backward()
    return flat_grad(r["student"])


print([tapped_vs_true(r) for r in (bad, good, also)], bad["margin"].min(), good["margin"].min())
assert tapped_vs_true(bad)[0] > 0.3 and tapped_vs_true(bad)[1] == 0
assert tapped_vs_true(good)[0] < 1e-5 and tapped_vs_true(good)[1] > 0.2
assert tapped_vs_true(also)[0] < 1e-5 and torch.allclose(also["margin"], good["margin"], atol=1e-5)
assert bad["margin"].abs().max() == 0 and good["margin"].max() < -0.3  # the margins vanish
state = {k: v.clone() for k, v in bad["student"].state_dict().items()}
gb, gg = (gradient(r, state) for r in (bad, good))
print(rel(gb, gg))
assert rel(gb, gg) > 0.3
