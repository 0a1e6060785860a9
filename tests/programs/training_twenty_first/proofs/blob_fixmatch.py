import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

FIX = ("F.cross_entropy(logits, pseudo)", "F.cross_entropy(logits, pseudo, reduction='none')")
bad, good = run("blob_fixmatch"), run("blob_fixmatch", FIX)


def share_outside(res):
    """Share of the gradient at the logits that falls on images which the mask leaves out."""
    seen = {}
    F = res["F"]
    orig = F.cross_entropy
    # a fresh, half-trained model: some images are confident, some are not
    model = res["model"]
    x = res["pool_x"][:256]
    with torch.no_grad():
        probs = F.softmax(model(x), -1)
    conf, pseudo = probs.max(-1)
    mask = conf.ge(res["THRESHOLD"]).float()

    def spy(logits, target, **kw):
        logits.retain_grad()
        seen["logits"] = logits
        return orig(logits, target, **kw)

    weak, F.cross_entropy = res["weak"], spy
    res["weak"] = lambda t: t
    try:
        loss, _, _ = res["consistency_loss"](model, x)
        loss.backward()
    finally:
        F.cross_entropy, res["weak"] = orig, weak
    g = seen["logits"].grad.abs().sum(-1)
    return (g[mask == 0].sum() / g.sum()).item(), 1 - mask.mean().item()


sb, sg = share_outside(bad), share_outside(good)
acc_b, acc_g = [bad["final"]], [good["final"]]
for seed in (1, 2):
    s = ("torch.manual_seed(21)", f"torch.manual_seed({seed})")
    acc_b.append(run("blob_fixmatch", s)["final"])
    acc_g.append(run("blob_fixmatch", s, FIX)["final"])
print("gradient share on masked-out images, share of masked-out images:", sb, "repaired", sg)
print("accuracy", acc_b, "repaired", acc_g)
assert sb[1] > 0.05 and sb[0] > 0.1 and sg[0] == 0.0
assert acc_g[0] > acc_b[0] + 0.02
