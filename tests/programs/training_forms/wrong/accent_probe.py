from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)


def rescale(grad, factor):
    return grad * factor


class PhoneModel(nn.Module):
    def __init__(self, n_mels=20, width=32, phones=6, accents=3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_mels, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.phone = nn.Linear(width, phones)
        self.accent = nn.Linear(width, accents)

    def forward(self, frames, strength):
        features = self.trunk(frames)
        phone = self.phone(features)
        branch = features.float()
        if branch.requires_grad:
            branch.register_hook(partial(rescale, factor=-strength))
        return phone, self.accent(branch)


def synth(n):
    means = torch.randn(6, 20)
    offsets = torch.randn(3, 20)
    p = torch.randint(0, 6, (n,))
    a = torch.randint(0, 3, (n,))
    return means[p] + offsets[a] + 0.7 * torch.randn(n, 20), p, a


frames, phones, accents = synth(960)
model = PhoneModel()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)

for epoch in range(6):
    order = torch.randperm(len(frames))
    for chunk in order.split(96):
        phone, accent = model(frames[chunk], strength=0.3)
        loss = F.cross_entropy(phone, phones[chunk]) + F.cross_entropy(accent, accents[chunk])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        phone, accent = model(frames, strength=0.0)
        print(
            f"epoch {epoch} phone loss {F.cross_entropy(phone, phones).item():.4f} "
            f"phone acc {(phone.argmax(1) == phones).float().mean().item():.3f} "
            f"accent acc {(accent.argmax(1) == accents).float().mean().item():.3f}"
        )
