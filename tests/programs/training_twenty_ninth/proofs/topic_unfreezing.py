import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

written = run("topic_unfreezing")
trainer = written["trainer"]
# the schedule drives an optimizer nobody steps; the one that steps keeps the base rate to the end
assert trainer.scheduler.optimizer is not trainer.optimizer
assert trainer.scheduler.get_last_lr()[0] == 0.0
assert trainer.optimizer.param_groups[0]["lr"] == trainer.lr == 1e-2

repaired = run(
    "topic_unfreezing",
    ("        module.requires_grad_(True)\n        self.optimizer = self.build_optimizer()\n",
     "        module.requires_grad_(True)\n        self.optimizer = self.build_optimizer()\n        done = len(self.history)\n"
     "        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: self.slanted(done + step))\n"))
trainer = repaired["trainer"]
assert trainer.scheduler.optimizer is trainer.optimizer
assert trainer.optimizer.param_groups[0]["lr"] == 0.0
# the first stage is the same, the later ones are not
assert trainer.history[:40] == written["trainer"].history[:40]
assert rel(flat(written["model"]), flat(repaired["model"])) > 1e-2
print("proved", rel(flat(written["model"]), flat(repaired["model"])))
