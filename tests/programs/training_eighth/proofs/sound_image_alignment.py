import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
w = run("sound_image_alignment")
f = run("sound_image_alignment", ("        self.logit_scale = nn.Parameter(self.logit_scale.detach().clamp(0.0, self.highest))", "        self.logit_scale.data.clamp_(0.0, self.highest)"))
print(w.output, f.output)
def moved(r):
    return abs(r["model"].logit_scale.exp().item() - r["first_scale"])
assert not in_optimizer(w["model"].logit_scale, w["opt"]) and in_optimizer(f["model"].logit_scale, f["opt"])
assert moved(w) < 0.02 and moved(f) > 0.2, (moved(w), moved(f))
