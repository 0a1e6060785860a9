import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
import torch

fix = [("self.bias = nn.Parameter(-mean)", "self.bias.data.copy_(-mean)"),
       ("self.log_scale = nn.Parameter(-std.log())", "self.log_scale.data.copy_(-std.log())")]
w, f = run("glow_tabular"), run("glow_tabular", *fix)


def facts(r):
    norms = [m for m in r["flow"].steps if type(m).__name__ == "ActNorm"]
    inside = [in_optimizer(p, r["optimizer"]) for m in norms for p in (m.bias, m.log_scale)]
    before = [p.detach().clone() for m in norms for p in (m.bias, m.log_scale)]
    r["optimizer"].zero_grad()
    (-r["flow"].log_prob(r["make_table"](256)).mean()).backward()
    r["optimizer"].step()
    after = [p.detach() for m in norms for p in (m.bias, m.log_scale)]
    return inside, [(a - b).abs().max().item() for a, b in zip(after, before)], r["nll"]


a, b = facts(w), facts(f)
print("wrong", a, "\nfixed", b)
assert not any(a[0]) and all(b[0])
assert max(a[1]) == 0.0 and min(b[1]) > 0.0
