import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad, rel
import torch
FIX = ("        loss_g.backward()\n", "        for q, g in zip(self.generator.parameters(), torch.autograd.grad(loss_g, list(self.generator.parameters()))):\n            q.grad = g\n")
w, f = run("gan_rings"), run("gan_rings", FIX)
print(w.output, f.output)

def one(r):
    """relative error of the critic's gradient of one round, measured against the critic's own loss alone"""
    g = r["game"]
    state = g.gen.get_state()
    params = list(g.critic.parameters())
    real = r["ring"](96, g.gen)
    fake = g.generator(96, g.gen)
    own = torch.cat([x.flatten() for x in torch.autograd.grad(r["critic_loss"](g.critic, real, fake), params)])
    g.gen.set_state(state)
    g.opt_c.step = lambda: None
    g.opt_g.step = lambda: None
    g.round()
    return rel(flat_grad(g.critic), own)
a, b = one(w), one(f)
torch.manual_seed(0)
print("relative error of the critic gradient", a, b)
assert a > 0.3 and b < 1e-5
assert w["game"].coverage()[1] + 0.3 < f["game"].coverage()[1]
