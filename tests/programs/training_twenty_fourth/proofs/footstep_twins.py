import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("footstep_twins")
# repaired: the seed also depends on which of the two views is drawn
good = run(
    "footstep_twins",
    ("def __call__(self, x, index):", "def __call__(self, x, index, view):"),
    ("self.epoch + index)", "self.epoch + 2 * index + view)"),
    ("self.augment(self.wave[i], i), self.augment(self.wave[i], i)", "self.augment(self.wave[i], i, 0), self.augment(self.wave[i], i, 1)"),
)
equal = [torch.equal(*bad["twins"][i]) for i in range(50)]
differ = [torch.equal(*good["twins"][i]) for i in range(50)]
print(bad.output, good.output, sum(equal), sum(differ))
assert all(equal) and not any(differ)
assert good["score"] > bad["score"] + 0.05
