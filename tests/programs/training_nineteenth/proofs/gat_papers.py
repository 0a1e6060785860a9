import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
import torch

torch.set_num_threads(1)
seeds = (3, 4, 5)
out = {}
for seed in seeds:
    edit = ("torch.manual_seed(3)", f"torch.manual_seed({seed})")
    wrong = run("gat_papers", edit)
    fixed = run("gat_papers", edit, ('if name.endswith("bias")]', 'if not name.endswith("weight")]'))
    att = wrong["model"].attend.att_src
    assert not in_optimizer(att, wrong["optimizer"]) and att.grad.norm() > 0
    assert in_optimizer(fixed["model"].attend.att_src, fixed["optimizer"])
    out[seed] = [(r["test_acc"], r["loss"].item(), r["survey_share"]) for r in (wrong, fixed)]
    print(seed, out[seed])
    torch.manual_seed(seed)
    wrong["make_graph"](5), torch.randperm(300)
    fresh = wrong["GAT"]()
    assert torch.equal(fresh.attend.att_src, att) and torch.equal(fresh.attend.att_dst, wrong["model"].attend.att_dst)
    assert not torch.equal(fresh.attend.att_src, fixed["model"].attend.att_src)
mean = lambda which, what: sum(out[s][which][what] for s in seeds) / len(seeds)
print("test acc", mean(0, 0), "->", mean(1, 0), " loss", mean(0, 1), "->", mean(1, 1), " survey share", mean(0, 2), "->", mean(1, 2))
assert mean(1, 0) > mean(0, 0) + 0.02 and mean(1, 2) < mean(0, 2) - 0.05
