import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
w = run("load_forecaster")
f = run("load_forecaster", ("            p.requires_grad_(True)\n        self.optimizer = self.build_optimizer()\n",
    "            p.requires_grad_(True)\n        self.optimizer.add_param_group({'params': self.model.backbone(), 'initial_lr': self.lr})\n"
    "        self.scheduler.base_lrs.append(self.lr)\n        self.scheduler.lr_lambdas.append(self.scheduler.lr_lambdas[0])\n"))
a, b = w["runner"], f["runner"]
print(w.output, f.output)
assert a.scheduler.optimizer is not a.optimizer and b.scheduler.optimizer is b.optimizer
n = a.unfreeze_at
assert set(a.rates[n:]) == {a.lr}
assert len(set(b.rates[n:])) > 50 and b.rates[-1] < 1e-4
