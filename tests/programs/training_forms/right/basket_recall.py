import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(17)
ITEMS, STEPS = 40, 10


class SessionModel(nn.Module):
    def __init__(self, dim=20):
        super().__init__()
        self.item = nn.Embedding(ITEMS, dim)
        self.ask, self.key, self.val = (nn.Linear(dim, dim) for _ in range(3))
        self.fade = nn.Parameter(torch.tensor(0.2))
        self.register_buffer("later", torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1))

    def attend(self, h, age):
        scores = torch.einsum("bqd,bkd->bqk", self.ask(h), self.key(h)) / h.size(-1) ** 0.5
        scores = torch.sub(scores, self.fade * age[:, None])
        return torch.softmax(scores.masked_fill(self.later, -1e9), -1) @ self.val(h)

    def forward(self, clicks, age):
        h = self.item(clicks)
        return F.linear(h + self.attend(h, age), self.item.weight)


def sessions(n):
    taste = torch.randint(0, 4, (n, 1))
    moved = torch.arange(STEPS + 1) > torch.randint(2, 9, (n, 1))
    taste = torch.where(moved, (taste + 1) % 4, taste)
    clicks = taste * 10 + torch.randint(0, 10, (n, STEPS + 1))
    gaps = torch.rand(n, STEPS).cumsum(1)
    return clicks, gaps[:, -1:] - gaps


clicks, age = sessions(600)
model = SessionModel()
opt = torch.optim.Adam(
    [
        {"params": [p for n, p in model.named_parameters() if n != "fade"], "lr": 5e-3},
        {"params": [model.fade], "lr": 2e-2},
    ]
)
for epoch in range(6):
    for c, a in zip(clicks.split(60), age.split(60)):
        logits = model(c[:, :-1], a)
        loss = F.cross_entropy(logits.transpose(1, 2), c[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} loss {loss.item():.4f} fade {model.fade.item():.4f}")
