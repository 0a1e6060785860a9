import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


class TagModel(nn.Module):
    def __init__(self, vocab=120, dim=32, tags=7):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.body = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim), nn.GELU())
        self.head = nn.Linear(dim, tags)

    def forward(self, ids):
        return self.head(self.body(self.words(ids)))


class Finetuner:
    base = {"words": 2e-3, "body": 4e-3, "head": 1e-2}
    warmup = {"words": 60, "body": 25, "head": 5}

    def __init__(self, model, total):
        self.model = model
        groups = [
            {"params": getattr(model, name).parameters(), "lr": lr} for name, lr in self.base.items()
        ]
        self.opt = torch.optim.AdamW(groups, weight_decay=0.01)
        curves = []
        for name in self.base:
            ramp = self.warmup[name]
            curves.append(
                lambda step, ramp=ramp: min(1.0, (step + 1) / ramp) * 0.5 * (1 + math.cos(math.pi * step / total))
            )
        self.sched = LambdaLR(self.opt, curves)

    def step(self, ids, tags):
        loss = nn.functional.cross_entropy(self.model(ids), tags, label_smoothing=0.05)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.sched.step()
        return loss.item()


def sentences(n, gen):
    tags = torch.randint(7, (n,), generator=gen)
    ids = torch.randint(120, (n, 14), generator=gen)
    marked = torch.rand(n, 14, generator=gen) < 0.35
    topical = tags[:, None] * 17 + torch.randint(17, (n, 14), generator=gen)
    return torch.where(marked, topical, ids), tags


if __name__ == "__main__":
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(4)
    tuner = Finetuner(TagModel(), total=140)
    for it in range(140):
        loss = tuner.step(*sentences(48, gen))
        if it % 20 == 0:
            rates = "  ".join(f"{lr:.5f}" for lr in tuner.sched.get_last_lr())
            print(f"{it:3d}  loss {loss:.4f}  rates {rates}")
    ids, tags = sentences(1000, gen)
    with torch.no_grad():
        acc = (tuner.model(ids).argmax(1) == tags).float().mean()
    print(f"accuracy {acc:.4f}  last loss {loss:.5f}")
