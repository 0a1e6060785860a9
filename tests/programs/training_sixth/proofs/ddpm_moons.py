import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

record = ("    loss = diffusion.loss(batch)\n", "    loss = diffusion.loss(batch)\n    MODES.append((model.training, model.net[2].training))\n")
fix = ("            x = mean + self.betas[i].sqrt() * torch.randn_like(x) if i > 0 else mean\n",
       "            x = mean + self.betas[i].sqrt() * torch.randn_like(x) if i > 0 else mean\n        self.model.train()\n")
a, b = [], []
run("ddpm_moons", record, inject={"MODES": a})
run("ddpm_moons", record, fix, inject={"MODES": b})
share = lambda ms: sum(m[1] for m in ms) / len(ms)
print("steps with dropout: wrong", share(a), "fixed", share(b))
assert sum(m[1] for m in a) == 1 and a[0][1] and share(b) == 1.0
