import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = ("        self.score = self._make_head", "        self.stem.apply(init_weights)\n        self.score = self._make_head")
fix2 = ("        self.apply(init_weights)\n", "")
bad, good = run("cell_detector"), run("cell_detector", fix, fix2)
torch.manual_seed(0)
b, g = bad["CellDetector"](), good["CellDetector"]()
print("fresh score bias", b.score[-1].bias.tolist(), g.score[-1].bias.tolist())
print("fresh weight std", b.score[-1].weight.std().item(), g.score[-1].weight.std().item())
print("first focal", bad["log"][0][0], good["log"][0][0])
print("first grad norm", bad["log"][0][2], good["log"][0][2])
print("validation", [(r["val_focal"], r["val_offset"], r["hit"]) for r in (bad, good)])
assert b.score[-1].bias.abs().max() == 0 and g.score[-1].bias.max() < -4
assert bad["log"][0][0] > 5 * good["log"][0][0]
assert bad["log"][0][2] > 50 * good["log"][0][2]
