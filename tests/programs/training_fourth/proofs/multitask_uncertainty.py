import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("multitask_uncertainty", capture=("main",)).locals["main"]
g = run("multitask_uncertainty", ("torch.optim.Adam(model.parameters(), lr=lr)", "torch.optim.Adam([*model.parameters(), {}], lr=lr)".replace("[*model.parameters(), {}]", "[{'params': model.parameters()}, {'params': criterion.parameters(), 'lr': 0.05}]")), capture=("main",)).locals["main"]
for d in (b, g):
    print(d["weights"].tolist(), d["explained"].tolist())
p = b["criterion"].log_var
assert not in_optimizer(p, b["trainer"].optimizer) and p.grad is not None and p.abs().sum().item() == 0
assert g["explained"][1] > b["explained"][1] + 0.2
