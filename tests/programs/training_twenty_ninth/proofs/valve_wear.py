import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("self.model = copy.deepcopy(self.best_model)", "self.model.load_state_dict(self.best_model.state_dict())")
wrong = run("valve_wear")
right = run("valve_wear", FIX)
tw, tr = wrong["trainer"], right["trainer"]
print(wrong.output, right.output, sep="\n")

assert not any(in_optimizer(p, tw.optimizer) for p in tw.model.parameters())
assert all(in_optimizer(p, tr.optimizer) for p in tr.model.parameters())
first = next(e for e, _, _, v in tw.history if v == "plateau")
assert first < tw.cfg.epochs - 4
after_wrong = {val for e, _, val, _ in tw.history if e > first}
after_right = {val for e, _, val, _ in tr.history if e > first}
assert len(after_wrong) == 1                                      # the model never changes again
assert len(after_right) == tr.cfg.epochs - 1 - first
assert torch.equal(flat(tw.model), flat(tw.best_model))
assert tr.monitor.best < 0.9 * tw.monitor.best
# gradients of the new model are never cleared: they are the sum over all batches since the last copy
assert all(p.grad is None for g in tw.optimizer.param_groups for p in g["params"])
