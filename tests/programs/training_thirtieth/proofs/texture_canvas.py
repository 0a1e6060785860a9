import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch
import torch.nn.functional as F

fix = ("inplace=True", "inplace=False")
a = run("texture_canvas")
b = run("texture_canvas", fix)
# the trained feature nets are the same in both runs
assert rel(flat(a["net"]), flat(b["net"])) < 1e-5

taps = a["STYLE_TAPS"] + (a["CONTENT_TAP"],)
with torch.no_grad():
    kept_a = a["net"].features(a["content"], taps)[1]
    kept_b = b["net"].features(a["content"], taps)[1]
    true1 = F.conv2d((a["content"] - 0.45) / 0.25, a["net"].blocks["conv1"].weight, a["net"].blocks["conv1"].bias, padding=1)
print("lowest kept value as written", [round(kept_a[t].min().item(), 3) for t in taps])
print("lowest kept value repaired  ", [round(kept_b[t].min().item(), 3) for t in taps])
assert all(kept_a[t].min() >= 0 for t in taps), "as written the taps hold rectified maps"
assert all(kept_b[t].min() < -0.1 for t in taps)
assert rel(kept_a["conv1"], true1) > 0.1 and rel(kept_b["conv1"], true1) < 1e-5
assert rel(kept_a["conv1"], true1.relu()) < 1e-5

# the kept tensor is the memory of the rectifier's output
last, kept = a["net"].features(a["content"], taps)
assert last.data_ptr() == kept["conv3"].data_ptr()


def canvas_grad(r):
    torch.manual_seed(0)
    canvas = torch.rand(1, 3, 24, 24).requires_grad_()
    target = r["net"].features(a["content"], taps)[1]["conv3"]
    F.mse_loss(r["net"].features(canvas, taps)[1]["conv3"], target).backward()
    return canvas.grad


d = rel(canvas_grad(a), canvas_grad(b))
print("relative difference of the canvas' gradient", round(d, 3))
assert d > 0.1


# what the author wants to be small (content and style before the activation), for the two results
def wanted_loss(image):
    with torch.no_grad():
        f, g = b["net"].features, b["gram"]
        m, c, s = f(image, taps)[1], f(a["content"], taps)[1], f(a["style"], taps)[1]
        return F.mse_loss(m["conv3"], c["conv3"]).item(), sum(F.mse_loss(g(m[t]), g(s[t])).item() for t in a["STYLE_TAPS"])


la, lb = wanted_loss(a["result"]), wanted_loss(b["result"])
print("content and style before the activation: as written", la, "repaired", lb)
assert sum(la) > 1.15 * sum(lb)
