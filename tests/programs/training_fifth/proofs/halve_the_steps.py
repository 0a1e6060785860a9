import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
w = run("halve_the_steps", capture=("main",))
r = run("halve_the_steps", ("copy.copy(teacher)", "copy.deepcopy(teacher)"), capture=("main",))
start = run("halve_the_steps", ("    four = distill(teacher, 4)\n", "    return teacher\n"), capture=("main",)).locals["main"]["teacher"]
a, b = w.locals["main"], r.locals["main"]
assert torch.equal(flat(start), flat(b["teacher"])) and rel(flat(a["teacher"]), flat(start)) > 0.02
assert all(p is q for p, q in zip(a["teacher"].parameters(), a["two"].parameters()))
x = a["real"]
loss = lambda g, m: (torch.manual_seed(1), torch.stack([g["denoising_loss"](m, x) for _ in range(30)]).mean().item())[1]
lw, lr = loss(w, a["teacher"]), loss(r, b["teacher"])
print("teacher denoising loss", lw, lr, "energy distance of two steps", a["result"], b["result"])
assert lw > 1.1 * lr and a["result"] > 1.2 * b["result"]
