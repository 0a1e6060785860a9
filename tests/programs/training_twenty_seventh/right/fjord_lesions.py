"""Lesion segmentation with partly annotated masks; each update accumulates several micro-batches of unequal label counts."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORE = 255


@dataclass
class Config:
    size: int = 24
    classes: int = 3
    micro: int = 4
    accumulate: int = 4
    updates: int = 60
    lr: float = 4e-3


class TinyUNet(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.down1 = self.block(1, width)
        self.down2 = self.block(width, 2 * width)
        self.up = self.block(3 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def block(cin, cout):
        return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.GroupNorm(4, cout), nn.ReLU())

    def forward(self, x):
        a = self.down1(x)
        b = F.interpolate(self.down2(F.max_pool2d(a, 2)), scale_factor=2, mode="nearest")
        return self.head(self.up(torch.cat([a, b], 1)))


class Scans(torch.utils.data.Dataset):
    """A bright and a dark disc on a noisy background; annotators only labelled a band of rows of each scan."""

    def __init__(self, n, size, seed, full=False):
        gen = torch.Generator().manual_seed(seed)
        y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.items = []
        for _ in range(n):
            image, mask = 0.5 * torch.randn(size, size, generator=gen), torch.zeros(size, size, dtype=torch.long)
            for label, level in ((1, 1.0), (2, -1.0)):
                cy, cx, r = (torch.rand(3, generator=gen) * torch.tensor([16, 16, 3]) + torch.tensor([4, 4, 3])).tolist()
                disc = (y - cy) ** 2 + (x - cx) ** 2 < r ** 2
                image, mask = image + level * disc.float(), mask.masked_fill(disc, label)
            if not full:
                top = int(torch.randint(0, size - 4, (1,), generator=gen))
                height = int(torch.randint(2, size, (1,), generator=gen))
                mask[:top], mask[top + height:] = IGNORE, IGNORE
            self.items.append((image.unsqueeze(0), mask))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def accumulate(model, micro_batches):
    """Gradient of the mean loss over all annotated pixels of the micro-batches."""
    labelled = sum(int((mask != IGNORE).sum()) for _, mask in micro_batches)
    total = 0.0
    for image, mask in micro_batches:
        loss = F.cross_entropy(model(image), mask, ignore_index=IGNORE, reduction="sum") / labelled
        loss.backward()
        total += loss.item()
    return total


@torch.no_grad()
def dice(model, scans, classes):
    image, mask = (torch.stack(t) for t in zip(*scans.items))
    pred = model(image).argmax(1)
    pairs = [(pred == c, mask == c) for c in range(1, classes)]
    return [(2 * (p & t).sum() / (p.sum() + t.sum())).item() for p, t in pairs]


def main():
    cfg = Config()
    torch.manual_seed(0)
    train, held_out = Scans(256, cfg.size, seed=1), Scans(64, cfg.size, seed=2, full=True)
    loader = torch.utils.data.DataLoader(train, cfg.micro, shuffle=True, drop_last=True)
    model = TinyUNet(cfg.classes)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    stream = iter(loader)
    for update in range(1, cfg.updates + 1):
        window = []
        while len(window) < cfg.accumulate:
            batch = next(stream, None)
            if batch is None:
                stream = iter(loader)
                continue
            window.append(batch)
        opt.zero_grad()
        loss = accumulate(model, window)
        opt.step()
        if update % 20 == 0:
            print(f"update {update} loss {loss:.4f} dice", " ".join(f"{d:.3f}" for d in dice(model, held_out, 3)))
    return model, train


if __name__ == "__main__":
    model, train = main()
