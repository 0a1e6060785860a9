from functools import partial
import torch
from torch import nn

torch.manual_seed(9)
SHELVES, ITEMS, FEATS = 24, 7, 9


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATS, 20), nn.GELU())
        self.heads = nn.ModuleDict({"rank": nn.Linear(20, 1), "click": nn.Linear(20, 1)})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


running_lse = partial(torch.logcumsumexp, dim=-2)


def list_loss(scores, order):
    s = torch.take_along_dim(scores, order[..., None], dim=1)
    tail = running_lse(s.flip(1)).flip(1)
    return (tail - s).mean()


def click_loss(logit, click):
    return nn.functional.binary_cross_entropy_with_logits(logit.squeeze(-1), click)


def draw():
    x = torch.randn(SHELVES, ITEMS, FEATS)
    value = x[..., 0] - 0.5 * x[..., 1] ** 2
    order = (value + 0.2 * torch.randn_like(value)).argsort(dim=1, descending=True)
    click = (torch.rand_like(value) < torch.sigmoid(value)).float()
    return x, value, order, click


net = Scorer()
opt = torch.optim.NAdam(net.parameters(), lr=5e-3)
for step in range(150):
    x, value, order, click = draw()
    out = net(x)
    loss = list_loss(out["rank"], order) + click_loss(out["click"], click)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(f"step {step}  loss {loss.item():.4f}")

with torch.no_grad():
    x, value, order, _ = draw()
    top = net(x)["rank"].squeeze(-1).argmax(1)
    print(f"top item found {(top == order[:, 0]).float().mean():.3f}")
