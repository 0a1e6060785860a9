import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("cart_entropy")
b = run("cart_entropy", ("        self.opt_alpha.step()\n", "        self.opt_alpha.step()\n        self.alpha = self.log_alpha.exp().detach()\n"))
for tag, r in (("as written", a), ("repaired", b)):
    print(tag, "exp(log_alpha)", r["agent"].log_alpha.exp().item(), "alpha used", r["agent"].alpha.item(),
          "entropy", r["entropy"], "target", r["agent"].target_entropy, "return", r["score"])
assert a["agent"].alpha.item() == 1.0 and a["agent"].log_alpha.exp().item() < 0.5
assert b["agent"].alpha.item() == b["agent"].log_alpha.exp().item()
assert abs(b["entropy"] + 1) < abs(a["entropy"] + 1) - 0.3
assert b["score"] > a["score"] + 1
