import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
import torch.nn.functional as F

a = run("clinic_tagger")
b = run("clinic_tagger", ("logits.flatten(0, 1), tags.flatten())", 'logits.flatten(0, 1), tags.flatten(), reduction="none")'))
print(a.output, b.output)
# 1. changing the logits at padding must not change the loss, but it does
words, tags, mask = a["dev_batches"][0]
with torch.no_grad():
    logits = a["model"](words)
    shifted = logits + 3 * torch.randn_like(logits) * (1 - mask)[..., None]
    wrong = a["tagging_loss"](logits, tags, mask).item(), a["tagging_loss"](shifted, tags, mask).item()
    right = b["tagging_loss"](logits, tags, mask).item(), b["tagging_loss"](shifted, tags, mask).item()
print("loss, loss with noise at padding:", wrong, "repaired", right, "padding share", 1 - mask.mean().item())
assert wrong[1] > 1.4 * wrong[0] and abs(right[1] - right[0]) < 1e-6 and right[0] > 1.8 * wrong[0]
f = [r["evaluate"](r["model"], r["dev_batches"]) for r in (a, b)]
print("F1", f)
assert f[1] > f[0] + 0.01
