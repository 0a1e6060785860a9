import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

spy = ("        self.optimizer.step()\n        self.scheduler", "        self.optimizer.step()\n        USED.append(self.optimizer.param_groups[0]['lr'])\n        SEEN.append(nn.utils.parameters_to_vector(self.model.parameters()).detach())\n        self.scheduler")
repair = (
    "requires_grad_(True)\n        self.build_optimizer()\n",
    "requires_grad_(True)\n        self.build_optimizer()\n        done = self.scheduler.last_epoch\n"
    "        self.scheduler = LambdaLR(self.optimizer, lambda k: warmup_then_linear(k + done))\n",
)
used, used_fixed, seen, seen_fixed = [], [], [], []
asis = run("entity_tagger", spy, inject={"USED": used, "SEEN": seen})
fixed = run("entity_tagger", spy, repair, inject={"USED": used_fixed, "SEEN": seen_fixed})
t = asis["tuner"]
H, N = asis["HEAD_STEPS"], asis["TOTAL_STEPS"]
assert t.scheduler.optimizer is not t.optimizer
# what the scheduler says falls to 0, what the optimizer uses stays at the peak
assert t.lr_log[-1] == 0.0 and all(lr == 3e-2 for lr in used[H:]), used[H:]
assert used_fixed[:H] == used[:H] and used_fixed[-1] < 3e-2 / 50
assert all(a >= b for a, b in zip(used_fixed[H:], used_fixed[H + 1:]))
# the weights of the last steps are to settle as the schedule falls to 0; as written they move on at full size
def late_move(seen):
    return sum((b - a).norm().item() for a, b in zip(seen[-11:], seen[-10:]))
print("movement in the last steps", late_move(seen), "repaired", late_move(seen_fixed))
assert late_move(seen) > 5 * late_move(seen_fixed)
