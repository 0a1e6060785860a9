import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)
KEEP = ('torch.save({"model"', 'torch.save({"index": self.index, "model"')
LOAD = ('        state = torch.load(source)\n',
        '        state = torch.load(source)\n        self.index = dict(state["index"])\n'
        '        for _, name in self.log:\n            self.index.setdefault(name, len(self.index))\n')
PROBE = ("    job.restore(checkpoint)\n",
         "    before = dict(world_index)\n    job.restore(checkpoint)\n    restored_auc = job.auc(monday)\n"
         "    moved = sum(job.index.get(n) != i for n, i in before.items()) / len(before)\n")
MARK = ("    job.save(checkpoint)\n", "    job.save(checkpoint)\n    world_index, saved_auc = job.index, job.auc(monday)\n")
bad = run("playlist_rekindle", PROBE, MARK)
good = run("playlist_rekindle", PROBE, MARK, KEEP, LOAD)
for r in (bad, good):
    r["final"] = r["job"].auc(r["holdout"])
    print({k: round(r[k], 3) for k in ("saved_auc", "restored_auc", "moved", "final")})
print(bad.output, good.output)
assert bad["moved"] > 0.8 and good["moved"] == 0
assert bad["restored_auc"] < 0.6 and abs(good["restored_auc"] - good["saved_auc"]) < 0.05
assert good["final"] > bad["final"] + 0.03
