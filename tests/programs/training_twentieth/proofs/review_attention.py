import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

fix = ("key_padding_mask=mask)", "key_padding_mask=~mask)")
bad, good = run("review_attention"), run("review_attention", fix)


def share_on_padding(r, negate):
    m = r["model"].eval()
    tokens, mask, _ = next(iter(r["test_loader"]))
    with torch.no_grad():
        x = m.embed(tokens) + m.position
        _, w = m.attention(x, x, x, key_padding_mask=~mask if negate else mask)
    return (w * ~mask[:, None, :]).sum(-1).mean().item()


a, b = share_on_padding(bad, False), share_on_padding(good, True)
print("attention weight on padding:", a, "repaired", b)
print("accuracy:", bad["test_accuracy"], "repaired", good["test_accuracy"])
assert a > 0.999 and b < 0.001
assert good["test_accuracy"] > bad["test_accuracy"] + 0.1
