import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("quill_tagger")
good = run("quill_tagger", ("from_pretrained(vectors, padding_idx=PAD)", "from_pretrained(vectors, freeze=False, padding_idx=PAD)"))
for r in (bad, good):
    assert in_optimizer(r["model"].embed.weight, r["optimizer"])
assert bad["model"].embed.weight.grad is None
assert torch.equal(bad["model"].embed.weight, bad["vectors"])
assert rel(good["model"].embed.weight.detach(), good["vectors"]) > 0.1
a, b = (r["accuracy"](r["model"], r["test"]) for r in (bad, good))
print("accuracy frozen", a, "tuned", b)
assert b > a + 0.05
