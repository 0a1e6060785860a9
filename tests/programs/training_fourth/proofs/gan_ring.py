import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

record = ("        d_loss.backward()\n",
          "        ref = torch.cat([g.flatten() for g in torch.autograd.grad(d_loss, list(self.disc.parameters()), retain_graph=True)])\n"
          "        d_loss.backward()\n"
          "        got = torch.cat([p.grad.flatten() for p in self.disc.parameters()])\n"
          "        REC.append(((got - ref).norm() / ref.norm()).item())\n")
fix = ("        fake = self.sample(len(real)).detach()\n",
       "        fake = self.sample(len(real)).detach()\n        self.opt_d.zero_grad()\n")
bad_rec, good_rec = [], []
bad = run("gan_ring", record, inject={"REC": bad_rec})
good = run("gan_ring", fix, record, inject={"REC": good_rec})
med = lambda v: sorted(v)[len(v) // 2]
print("relative grad error", med(bad_rec), max(good_rec), "results", bad["result"], good["result"])
assert med(bad_rec[1:]) > 0.3 and max(good_rec) < 1e-4
assert bad["result"][1] > 1.5 * good["result"][1]
