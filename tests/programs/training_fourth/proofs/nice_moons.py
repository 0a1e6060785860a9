import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
bad = run("nice_moons", capture=("main",)).locals["main"]
good = run("nice_moons", ("self.shift = nn.Parameter(-mean)", "self.shift.data.copy_(-mean)"),
           ("self.log_scale = nn.Parameter(-torch.log(std + 1e-6))", "self.log_scale.data.copy_(-torch.log(std + 1e-6))"),
           capture=("main",)).locals["main"]
lost = lambda d: [n for n, p in d["flow"].named_parameters() if not in_optimizer(p, d["optimizer"])]
print("nll", bad["nll"], "repaired", good["nll"], lost(bad))
assert len(lost(bad)) == 10 and not lost(good)
assert bad["nll"] > good["nll"] + 0.1
