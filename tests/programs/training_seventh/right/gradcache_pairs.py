"""Contrastive caption/sketch matching with a batch larger than fits in one pass: embeddings first, chunks after."""
import torch
import torch.nn.functional as F
from torch import nn

WORDS, LENGTH, SIDE = 60, 8, 12


class SketchTower(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, stride=2, padding=1)
        self.proj = nn.Linear(12 * (SIDE // 2) ** 2, dim)

    def forward(self, x):
        return F.normalize(self.proj(F.relu(self.conv(x)).flatten(1)), dim=1)


class CaptionTower(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.proj = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, dim))

    def forward(self, ids):
        return F.normalize(self.proj(self.embed(ids).mean(1)), dim=1)


class Temperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_t = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        logits = self.log_t.exp() * a @ b.T
        label = torch.arange(len(a))
        return 0.5 * (F.cross_entropy(logits, label) + F.cross_entropy(logits.T, label))


def pairs(n, gen, concepts=30):
    """Each pair shares two concepts; a concept is a word pair and a stroke position."""
    c = torch.randint(0, concepts, (n, 3), generator=gen)
    ids = torch.randint(0, WORDS, (n, LENGTH), generator=gen)
    x = 0.2 * torch.randn(n, 1, SIDE, SIDE, generator=gen)
    for k in range(3):
        ids[:, 2 * k], ids[:, 2 * k + 1] = 2 * c[:, k], 2 * c[:, k] + 1
        row, col = c[:, k] // 6 * 2, c[:, k] % 6 * 2
        for dr in (0, 1):
            for dc in (0, 1):
                x[torch.arange(n), 0, row + dr, col + dc] += 1.0
    return x, ids


def big_batch_step(sketch, caption, head, opt, x, ids, chunk):
    with torch.no_grad():
        a = torch.cat([sketch(part) for part in x.split(chunk)])
        b = torch.cat([caption(part) for part in ids.split(chunk)])
    a.requires_grad_()
    b.requires_grad_()
    opt.zero_grad()
    loss = head(a, b)
    loss.backward()
    for tower, inputs, cached in ((sketch, x, a.grad), (caption, ids, b.grad)):
        for part, g in zip(inputs.split(chunk), cached.split(chunk)):
            surrogate = (tower(part) * g).sum()
            surrogate.backward()
    opt.step()
    return loss.detach()


def recall_at_1(sketch, caption, x, ids):
    with torch.no_grad():
        hit = (sketch(x) @ caption(ids).T).argmax(1) == torch.arange(len(x))
    return hit.float().mean().item()


def main(updates=150, batch=128, chunk=32):
    torch.manual_seed(9)
    gen = torch.Generator().manual_seed(77)
    sketch, caption, head = SketchTower(), CaptionTower(), Temperature()
    towers = [*sketch.parameters(), *caption.parameters()]
    opt = torch.optim.AdamW(
        [{"params": towers, "weight_decay": 1e-3}, {"params": head.parameters(), "weight_decay": 0.0}], lr=4e-3
    )
    running = None
    for i in range(updates):
        loss = big_batch_step(sketch, caption, head, opt, *pairs(batch, gen), chunk)
        running = loss if running is None else 0.95 * running + 0.05 * loss
        if i % 30 == 0:
            print(f"update {i:4d}  loss {running.item():.3f}")
    print(f"recall@1 among 200: {recall_at_1(sketch, caption, *pairs(200, gen)):.3f}")


if __name__ == "__main__":
    main()
