import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("darts_mix", capture=("main", "search"))
g = run("darts_mix", ("torch.optim.Adam(net.parameters(),", "torch.optim.Adam([p for n, p in net.named_parameters() if not n.endswith('alpha')],"), capture=("main", "search"))
print(b.output, g.output)
s = b.locals["search"]
assert all(in_optimizer(a, s["w_opt"]) and in_optimizer(a, s["a_opt"]) for a in s["net"].arch_parameters())
b, g = b.locals["main"], g.locals["main"]
assert b["mix"][:, 2].mean() > g["mix"][:, 2].mean() + 0.1 and b["error"] > 1.2 * g["error"]
