import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

FIX = ("h_n.reshape(tokens.shape[0], -1)", "torch.cat([h_n[-2], h_n[-1]], dim=1)")
a, b = run("review_bilstm"), run("review_bilstm", FIX)


def leak(r):
    """Greatest change of the logits of sentences 0-4 when only the other sentences of the batch change."""
    m, (tok, ln, _) = r["model"].eval(), r["test"]
    with torch.no_grad():
        return (m(tok[:10], ln[:10]) - m(torch.cat([tok[:5], tok[20:25]]), torch.cat([ln[:5], ln[20:25]])))[:5].abs().max().item(), \
            (m(tok[:10], ln[:10]) - m(tok[:20], ln[:20])[:10])[:5].abs().max().item()


print("test accuracy", a["accuracy"], "repaired", b["accuracy"])
print("dependence on batch mates / batch size", leak(a), "repaired", leak(b))
assert b["accuracy"] > a["accuracy"] + 0.2
assert max(leak(a)) > 1e-2 and max(leak(b)) < 1e-4
