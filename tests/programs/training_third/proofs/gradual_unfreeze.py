import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

fix = ("        self.opt = self._optimizer()\n\n    def step", "        live = self.opt.param_groups[0]['params']\n        live += [p for p in stage.parameters()]\n\n    def step")
a, b = run("gradual_unfreeze")["trainer"], run("gradual_unfreeze", fix)["trainer"]
assert a.sched.optimizer is not a.opt and b.sched.optimizer is b.opt
assert a.opt.param_groups[0]["lr"] == 0.05 and a.sched.get_last_lr()[0] < 1e-3
assert b.opt.param_groups[0]["lr"] < 1e-3
assert rel(flat(a.model), flat(b.model)) > 0.02
print("proved: gradual_unfreeze")
