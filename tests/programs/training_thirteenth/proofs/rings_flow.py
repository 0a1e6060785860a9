import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import in_optimizer, run

bad = run("rings_flow", capture=("main",))
good = run("rings_flow", ("self.shift = nn.Parameter(-mean)", "self.shift.data.copy_(-mean)"),
           ("self.log_scale = nn.Parameter(-std.log())", "self.log_scale.data.copy_(-std.log())"), capture=("main",))
outside = {}
for label, r in (("bad", bad), ("good", good)):
    m = r.locals["main"]
    outside[label] = [n for n, p in m["flow"].named_parameters() if not in_optimizer(p, m["optimizer"])]
print(outside, "nll", bad["final_nll"], good["final_nll"])
assert len(outside["bad"]) == 12 and not outside["good"]
assert all(p.grad is not None for p in bad.locals["main"]["flow"].parameters())
assert bad['final_nll'] > good['final_nll'] + 0.1
