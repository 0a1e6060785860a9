import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fixes = [("        self.optimizer.zero_grad()\n        loss = F", "        loss = F"),
         ("            self.updates += 1\n", "            self.updates += 1\n            self.optimizer.zero_grad()\n")]
spy = [("        (loss / self.accumulate).backward()\n",
        "        WINDOW.append([g.clone() for g in torch.autograd.grad(loss / self.accumulate, list(self.model.parameters()), retain_graph=True)])\n"
        "        (loss / self.accumulate).backward()\n"),
       ("            self.optimizer.step()\n",
        "            want = torch.cat([sum(gs).flatten() for gs in zip(*WINDOW)]); WINDOW.clear()\n"
        "            got = torch.cat([p.grad.flatten() for p in self.model.parameters()])\n"
        "            REC.append((((got - want).norm() / want.norm()).item(), (got.norm() / want.norm()).item()))\n"
        "            self.optimizer.step()\n")]
a, b = [], []
bad = run("accum_segments", *spy, inject={"REC": a, "WINDOW": []})
good = run("accum_segments", *fixes, *spy, inject={"REC": b, "WINDOW": []})
med = lambda v: sorted(v)[len(v) // 2]
print("grad off by", med([x for x, _ in a]), max(x for x, _ in b), "ratio", med([y for _, y in a]),
      "loss", bad["train_loss"], good["train_loss"], "distance", bad["distance"], good["distance"])
assert len(a) == len(b) == 96
assert min(x for x, _ in a) > 0.4 and max(x for x, _ in b) < 1e-3
assert bad["train_loss"] > good["train_loss"] + 0.1 and bad["distance"] > good["distance"]
