"""Re-identification toy: batch-hard triplet loss with an auxiliary identity classifier; recall@1 on unseen identities."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--ids-per-batch", type=int, default=8)
    p.add_argument("--views", type=int, default=4)
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--margin", type=float, default=0.3)
    p.add_argument("--id-weight", type=float, default=0.1)
    p.add_argument("--lr", type=float, default=2e-3)
    return p.parse_known_args()[0]


class Gallery:
    """Each identity is a coarse colour pattern, seen through shifts, gain changes, occlusion and noise."""

    def __init__(self, identities, seed):
        self.gen = torch.Generator().manual_seed(seed)
        coarse = torch.randn(identities, 3, 4, 4, generator=self.gen)
        self.proto = F.interpolate(coarse, size=16, mode="bilinear", align_corners=False)

    def view(self, ids):
        x = self.proto[ids].clone()
        gain = 0.6 + 0.8 * torch.rand(len(ids), 3, 1, 1, generator=self.gen)
        x = x * gain + 0.6 * torch.randn(x.shape, generator=self.gen)
        for k in range(len(ids)):
            dy, dx, oy, ox = torch.randint(0, 6, (4,), generator=self.gen).tolist()
            x[k] = x[k].roll((dy - 3, dx - 3), (1, 2))
            x[k, :, oy:oy + 6, ox:ox + 6] = 0
        return x

    def pk_batch(self, p, k):
        ids = torch.randperm(len(self.proto), generator=self.gen)[:p].repeat_interleave(k)
        return self.view(ids), ids


class Embedder(nn.Module):
    def __init__(self, classes, dim=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten())
        self.project = nn.Linear(64 * 16, dim)
        self.neck = nn.BatchNorm1d(dim)
        self.classifier = nn.Linear(dim, classes, bias=False)

    def forward(self, x):
        feature = self.project(self.trunk(x))
        return feature, self.classifier(self.neck(feature))


def pairwise(x):
    sq = x.pow(2).sum(1)
    d2 = sq[:, None] + sq[None] - 2 * x @ x.t()
    return d2.clamp(min=1e-12).sqrt()


def batch_hard(feature, ids, margin):
    dist = pairwise(F.normalize(feature, dim=1))
    same = ids[:, None] == ids[None]
    hardest_pos = (dist * same.float()).max(dim=1).values
    hardest_neg = (dist * (~same).float()).min(dim=1).values
    return F.relu(hardest_pos - hardest_neg + margin).mean()


@torch.no_grad()
def recall_at_1(model, gallery, n):
    model.eval()
    ids = torch.arange(n)
    query = F.normalize(model(gallery.view(ids))[0], dim=1)
    index = F.normalize(model(gallery.view(ids.repeat(2)))[0], dim=1)
    model.train()
    nearest = (query @ index.t()).argmax(1) % n
    return (nearest == ids).float().mean().item()


def main(args):
    torch.manual_seed(0)
    train, test = Gallery(64, seed=1), Gallery(100, seed=2)
    model = Embedder(classes=64)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    for step in range(1, args.steps + 1):
        x, ids = train.pk_batch(args.ids_per_batch, args.views)
        feature, logits = model(x)
        id_loss = F.cross_entropy(logits, ids, label_smoothing=0.1)
        triplet = batch_hard(feature, ids, args.margin)
        loss = triplet + args.id_weight * id_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            acc = (logits.argmax(1) == ids).float().mean().item()
            print(f"step {step} id {id_loss.item():.3f} triplet {triplet.item():.3f} acc {acc:.2f}")
    score = recall_at_1(model, test, 100)
    print(f"recall@1 on new identities {score:.2f}")
    return model, score


if __name__ == "__main__":
    model, score = main(parse())
