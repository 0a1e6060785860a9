import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

r = run("listwise_ranker")
fixed = run("listwise_ranker", ("key_padding_mask=valid", "key_padding_mask=~valid"))


def influence(q):
    """Change of the scores of the first product when the other real products are replaced."""
    m = q["model"].train()
    x, grades, valid = q["pad"](q["test_queries"][:100])
    y = x.clone()
    y[:, 1:] = torch.where(valid[:, 1:, None], torch.randn_like(y[:, 1:]) + 1, y[:, 1:])
    with torch.no_grad():
        return (m(x, valid)[:, 0] - m(y, valid)[:, 0]).abs().mean().item()


print(influence(r), influence(fixed), r["quality"], fixed["quality"])
assert influence(r) < 1e-5 and influence(fixed) > 0.01
assert fixed["quality"] > r["quality"] + 0.03
