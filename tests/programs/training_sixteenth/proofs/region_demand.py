import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

line = "        self.model.encoder.requires_grad_(True)\n        self.optimizer = self.make_optimizer()\n"
fix = (line, line + "        done = self.scheduler.last_epoch\n        self.scheduler = torch.optim.lr_scheduler."
       "LambdaLR(self.optimizer, lambda s: self.lr_factor(s + done))\n")
bad, good = run("region_demand"), run("region_demand", fix)
lr = [r["trainer"].optimizer.param_groups[0]["lr"] for r in (bad, good)]
for r, v in zip((bad, good), lr):
    print("test pinball", r["test_loss"], "lr of the optimizer in use", v, "reported", r["trainer"].scheduler.get_last_lr())
tail = []
for r in (bad, good):
    tail.append(float(r.output.split("new region, all: loss ")[1].split()[0]))
print("last training loss", tail)
assert lr[0] == 0.01 and bad["trainer"].scheduler.get_last_lr()[0] < 1e-6 and lr[1] < 1e-6
assert bad["trainer"].scheduler.optimizer is not bad["trainer"].optimizer
assert bad["test_loss"] > 1.02 * good["test_loss"] and tail[0] > 1.02 * tail[1]
