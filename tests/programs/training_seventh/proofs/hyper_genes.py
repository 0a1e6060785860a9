import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
w, f = run("hyper_genes"), run("hyper_genes", ("torch.optim.SGD(model.parameters(), lr=lr)", "torch.optim.SGD([model.weight, model.bias], lr=lr)"))
print(w.output, f.output)
def moved_by_inner(r):
    before = r["model"].log_strength.detach().clone()
    r["problem"].inner_step()
    return (r["model"].log_strength.detach() - before).abs().max().item()
assert in_optimizer(w["model"].log_strength, w["problem"].inner) and in_optimizer(w["model"].log_strength, w["problem"].outer)
assert moved_by_inner(w) > 0 and moved_by_inner(f) == 0
assert w["nll"] > f["nll"] + 0.1
noise = [i for i in range(8) if i not in (1, 4)]
assert w["model"].log_strength[noise].mean() < f["model"].log_strength[noise].mean() - 1
