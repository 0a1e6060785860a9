import torch
from torch import nn

torch.manual_seed(61)
WORDS, WIDTH = 200, 16


def load_vectors():
    return torch.randn(WORDS, WIDTH, generator=torch.Generator().manual_seed(1)) * 0.3


class Reviewer(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.bag = nn.EmbeddingBag.from_pretrained(vectors, mode="mean")
        self.judge = nn.Sequential(nn.Linear(WIDTH, 20), nn.ReLU(), nn.Linear(20, 2))

    def forward(self, flat, starts):
        return self.judge(self.bag(flat, starts))

    def groups(self, slow, fast):
        return [
            {"params": self.bag.parameters(), "lr": slow},
            {"params": self.judge.parameters(), "lr": fast},
        ]


mood = torch.randn(WORDS)


def reviews(n):
    texts = [torch.randint(WORDS, (int(k),)) for k in torch.randint(4, 15, (n,))]
    starts = torch.tensor([0] + [len(t) for t in texts[:-1]]).cumsum(0)
    good = torch.stack([mood[t].mean() > 0 for t in texts]).long()
    return torch.cat(texts), starts, good


model = Reviewer(load_vectors())
opt = torch.optim.Adam(model.groups(slow=5e-3, fast=1e-2))
for it in range(120):
    flat, starts, good = reviews(48)
    loss = nn.functional.cross_entropy(model(flat, starts), good)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 40 == 39:
        print(f"batch {it + 1} loss {loss.item():.4f}")
with torch.no_grad():
    flat, starts, good = reviews(500)
    print("accuracy", (model(flat, starts).argmax(1) == good).float().mean().item())
