import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "load_quantiles"

fix = ("prediction[:, i : i + 1]", "prediction[:, i]")
was = run(NAME)
p, t = torch.randn(8, 3), torch.randn(8)
q = torch.tensor(was["QUANTILES"])
spread = t[None, :, None] - p[:, None, :]
crossed = torch.maximum(q * spread, (q - 1) * spread).mean()
assert torch.allclose(was["PinballLoss"](was["QUANTILES"])(p, t), crossed)
now = run(NAME, fix)


def true_loss(r):
    with torch.no_grad():
        p = r["model"](r["x_test"])
    e = r["y_test"][:, None] - p
    q = torch.tensor(r["QUANTILES"])
    return torch.maximum(q * e, (q - 1) * e).mean().item()


assert true_loss(now) < 0.7 * true_loss(was), (true_loss(now), true_loss(was))

print(f"proved: {NAME}")
