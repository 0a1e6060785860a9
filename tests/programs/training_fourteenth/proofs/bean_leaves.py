import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch

SHADOW = ("        self.model = copy.deepcopy(model).eval()",
          "        self.model = copy.deepcopy(model).eval()\n        self.start = [p.clone() for p in self.model.parameters()]\n"
          "        self.exact = [p.float().clone() for p in self.model.parameters()]")
UPDATE = ("            avg.mul_(self.decay).add_(p, alpha=1 - self.decay)",
          "            avg.mul_(self.decay).add_(p, alpha=1 - self.decay)\n"
          "        for e, p in zip(self.exact, model.parameters()):\n"
          "            e.mul_(self.decay).add_(p.float(), alpha=1 - self.decay)")
bad = run("bean_leaves", SHADOW, UPDATE)
good = run("bean_leaves", ("copy.deepcopy(model).eval()", "copy.deepcopy(model).float().eval()"),
           ("logits = model(x.bfloat16()).float()", "logits = model(x.to(next(model.parameters()).dtype)).float()"))
print("averaged accuracy", bad["acc_ema"], "->", good["acc_ema"], "raw", bad["acc_raw"], good["acc_raw"])
ema = bad["ema"]
got = torch.cat([p.float().flatten() for p in ema.model.parameters()])
exact = torch.cat([e.flatten() for e in ema.exact])
start = torch.cat([s.float().flatten() for s in ema.start])
unmoved = (got == start).float().mean().item()
exact_unmoved = (exact.bfloat16().float() == start).float().mean().item()
print("distance from the true average", rel(got, exact), "weights still at their first value", unmoved, "should be", exact_unmoved)
assert good["acc_raw"] == bad["acc_raw"] and good["acc_ema"] > bad["acc_ema"] + 0.05
assert rel(got - start, exact - start) > 0.5 and unmoved > 3 * exact_unmoved
