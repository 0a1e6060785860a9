"""Contrastive alignment of short sounds and small pictures of the same event, with a learned and bounded logit scale."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

AUDIO, PIX, LATENT = 96, 10, 6


def paired_events(n, gen):
    z = torch.randn(n, LATENT, generator=gen)
    t = torch.linspace(0, 1, AUDIO)
    bank = torch.stack([torch.sin(2 * math.pi * (k + 1) * 2 * t + k) for k in range(LATENT)])
    audio = z @ bank / 2 + 0.3 * torch.randn(n, AUDIO, generator=gen)
    axis = torch.linspace(-1, 1, PIX)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    planes = torch.stack([xx, yy, xx * yy, xx ** 2, yy ** 2, torch.cos(4 * xx)])
    image = torch.einsum("nk,khw->nhw", z, planes) + 0.3 * torch.randn(n, PIX, PIX, generator=gen)
    return audio.unsqueeze(1), image.unsqueeze(1)


class AudioTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=4, padding=4), nn.GELU(),
            nn.Conv1d(16, 16, 5, stride=2, padding=2), nn.GELU(),
            nn.Flatten(), nn.Linear(16 * 12, dim),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class ImageTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.GELU(),
            nn.Conv2d(12, 16, 3, padding=1), nn.GELU(),
            nn.Flatten(), nn.Linear(16 * 25, dim),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class Aligner(nn.Module):
    def __init__(self, dim=16, highest=50.0):
        super().__init__()
        self.audio = AudioTower(dim)
        self.image = ImageTower(dim)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(2.0)))
        self.highest = math.log(highest)

    def bound_scale(self):
        self.logit_scale = nn.Parameter(self.logit_scale.detach().clamp(0.0, self.highest))

    def forward(self, audio, image):
        a, v = self.audio(audio), self.image(image)
        logits = self.logit_scale.exp() * a @ v.t()
        label = torch.arange(len(a))
        return 0.5 * (F.cross_entropy(logits, label) + F.cross_entropy(logits.t(), label))


def split_decay(model, decay):
    plain = [p for p in model.parameters() if p.ndim < 2]
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}]


@torch.no_grad()
def recall_at_one(model, audio, image):
    model.eval()
    sim = model.audio(audio) @ model.image(image).t()
    return (sim.argmax(1) == torch.arange(len(audio))).float().mean().item()


def main(epochs=12):
    torch.manual_seed(14)
    gen = torch.Generator().manual_seed(14)
    train, test = paired_events(512, gen), paired_events(64, gen)
    model = Aligner()
    opt = torch.optim.AdamW(split_decay(model, 0.01), lr=3e-3)
    first_scale = model.logit_scale.exp().item()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(train[0]), generator=gen).split(64):
            loss = model(train[0][idx], train[1][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            model.bound_scale()
            total += loss.item() * len(idx)
        if epoch % 3 == 2:
            print(f"epoch {epoch} loss {total / len(train[0]):.3f}")
    recall = recall_at_one(model, *test)
    print(f"recall@1 {recall:.3f}, scale {model.logit_scale.exp().item():.2f}")
    return model, opt, first_scale, recall


if __name__ == "__main__":
    model, opt, first_scale, recall = main()
