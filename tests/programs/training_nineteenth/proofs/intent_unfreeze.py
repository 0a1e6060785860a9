import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

snap = ('    tuner.start_full_stage()\n', '    tuner.start_full_stage()\n    before = torch.cat([p.detach().flatten() for p in encoder.parameters()]).clone()\n')
end = ('    print(f"val accuracy {final_acc:.3f}")', '    after = torch.cat([p.detach().flatten() for p in encoder.parameters()])\n    moved = ((after - before).norm() / before.norm()).item()')
fix = ('        self.optimizer.param_groups[0]["lr"] = self.cfg["encoder_lr"]\n',
       '        self.optimizer.param_groups[0]["lr"] = self.cfg["encoder_lr"]\n        self.scheduler.base_lrs[0] = self.cfg["encoder_lr"]\n')
bad = run("intent_unfreeze", snap, end)
good = run("intent_unfreeze", fix, snap, end)
lr_end = bad["tuner"].optimizer.param_groups[0]["lr"]
print(lr_end, bad["moved"], good["moved"], bad["final_acc"], good["final_acc"])
assert lr_end == 0 and bad["moved"] < 0.01 < 0.1 < good["moved"]
assert good["final_acc"] > bad["final_acc"] + 0.1
