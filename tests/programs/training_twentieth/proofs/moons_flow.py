import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import in_optimizer, run

as_is = run("moons_flow")
fixed = run("moons_flow", ("self.shift = nn.Parameter(-mean)", "self.shift.data.copy_(-mean)"),
            ("self.log_scale = nn.Parameter(-(std + 1e-6).log())", "self.log_scale.data.copy_(-(std + 1e-6).log())"))
print(as_is.output, fixed.output)
for r, expected in ((as_is, 14), (fixed, 0)):
    stale = [n for n, p in r["flow"].named_parameters() if not in_optimizer(p, r["optimizer"])]
    print(len(stale), stale)
    assert len(stale) == expected
assert fixed["nll"] < as_is["nll"] - 0.1
