import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import in_optimizer, run

FIX = ('elif name.endswith("weight"):', "else:")
bad, good = run("caption_match"), run("caption_match", FIX)
for r in (bad, good):
    m = r["model"]
    missing = [n for n, p in m.named_parameters() if p.requires_grad and not in_optimizer(p, r["optimizer"])]
    print(missing, "scale", m.log_scale.exp().item(), "class token", m.image.class_token.abs().max().item(),
          "loss", r["loss"].item(), "accuracy", r["accuracy"])
m = bad["model"]
assert not in_optimizer(m.log_scale, bad["optimizer"]) and m.log_scale.grad.abs() > 0
assert m.log_scale.item() == 1.0 and m.image.class_token.abs().max() == 0
assert good["accuracy"] > bad["accuracy"] + 0.3
