import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("    @torch.no_grad()\n    def predict", "        for a, b in zip(self_buffers(self), student.buffers()):\n            a.copy_(b)\n\n    @torch.no_grad()\n    def predict")
helper = ("class Teacher:", "def self_buffers(t):\n    return list(t.net.buffers())\n\n\nclass Teacher:")
wrong, right = run("cell_masks"), run("cell_masks", repair, helper)
t, s = wrong["teacher"].net, wrong["student"]
for (name, a), (_, b) in zip(t.named_buffers(), s.named_buffers()):
    if name.endswith("running_mean"):
        assert torch.equal(a, torch.zeros_like(a)) and b.abs().max() > 0.01, name
    if name.endswith("running_var"):
        assert torch.equal(a, torch.ones_like(a)), name
student = wrong["iou"](torch.sigmoid(s.eval()(wrong["test_images"])).detach(), wrong["test_masks"])
print("IoU of the teacher", wrong["score"], "its student", student, "repaired teacher", right["score"])
assert wrong["score"] < right["score"] - 0.2
# the same averaged weights with the student's statistics
for a, b in zip(t.buffers(), s.buffers()):
    a.copy_(b)
fixed = wrong["iou"](wrong["teacher"].predict(wrong["test_images"]), wrong["test_masks"])
print("same weights, statistics of the student", fixed)
assert fixed > wrong["score"] + 0.2
