import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

probe = ("            self.optimizer.step()\n", "            self.optimizer.step()\n            LOG.append(self.optimizer.param_groups[0]['lr'])\n")
fix = ("        self.optimizer = torch.optim.SGD(\n            [{\"params\": self.model.head.parameters(), \"lr\": lr},\n"
       "             {\"params\": self.model.backbone.parameters(), \"lr\": lr * scale}], momentum=0.9, nesterov=True)\n",
       "        self.optimizer.param_groups[0]['nesterov'] = True\n"
       "        self.optimizer.add_param_group({\"params\": self.model.backbone.parameters(), \"lr\": lr * scale, 'nesterov': True,\n"
       "            'initial_lr': self.optimizer.param_groups[0]['initial_lr'] * scale,\n"
       "            'max_lr': self.optimizer.param_groups[0]['max_lr'] * scale, 'min_lr': self.optimizer.param_groups[0]['min_lr'] * scale,\n"
       "            'max_momentum': 0.95, 'base_momentum': 0.85})\n")
bad_lr, good_lr = [], []
bad = run("fabric_defects", probe, inject={"LOG": bad_lr})
good = run("fabric_defects", probe, fix, inject={"LOG": good_lr})
t = bad["trainer"]
start = bad["UNFREEZE_AT"] * (640 // bad["BATCH"])
assert t.scheduler.optimizer is not t.optimizer
print("lr used after unfreezing:", set(bad_lr[start:]), "last lr shown by the scheduler", t.scheduler.get_last_lr()[0])
assert len(set(bad_lr[start:])) == 1 and bad_lr[-1] > 1000 * t.scheduler.get_last_lr()[0]
assert good_lr[-1] < 1e-4 and good["trainer"].scheduler.optimizer is good["trainer"].optimizer
loss = [bad["trainer"].history[-1], good["trainer"].history[-1]]
acc = [r["trainer"].accuracy(r["test_image"], r["test_label"]) for r in (bad, good)]
print("last training loss", loss, "test accuracy", acc)
assert loss[1] < loss[0]
