"""Resume a texture encoder from a (simulated) multi-GPU checkpoint and train a defect classifier on top."""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
DIM, NUISANCE = 6, 26
mixing = torch.linalg.qr(torch.randn(DIM + NUISANCE, DIM + NUISANCE))[0]


def textures(n):
    factors = torch.randn(n, DIM)
    hidden = torch.cat([factors, 2.5 * torch.randn(n, NUISANCE)], 1)
    return hidden @ mixing, factors


def defects(n):
    x, factors = textures(n)
    label = (factors[:, 0] * factors[:, 1] + factors[:, 2] > 0).long()
    return x, label


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(DIM + NUISANCE, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return self.body(x)


class Wrapped(nn.Module):
    """Stands for DistributedDataParallel: same forward, the network sits in .module."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        return self.module(*args)


def pretrain():
    encoder = Wrapped(Encoder())
    readout = nn.Linear(16, DIM)
    optimizer = torch.optim.Adam([*encoder.parameters(), *readout.parameters()], lr=3e-3)
    x, factors = textures(3000)
    for epoch in range(8):
        for idx in torch.randperm(len(x)).split(100):
            loss = F.mse_loss(readout(encoder(x[idx])), factors[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"pretraining loss {loss.item():.4f}")
    file = io.BytesIO()
    torch.save({"model": encoder.state_dict(), "epoch": 8}, file)
    file.seek(0)
    return file


def finetune(file):
    checkpoint = torch.load(file)
    encoder = Encoder()
    encoder.load_state_dict(checkpoint["model"], strict=False)
    print(f"loaded checkpoint of epoch {checkpoint['epoch']}")
    encoder.requires_grad_(False)
    head = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(head.parameters(), lr=5e-3)
    x, y = defects(800)
    test_x, test_y = defects(800)
    for epoch in range(20):
        for idx in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(head(encoder(x[idx])), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        acc = (head(encoder(test_x)).argmax(1) == test_y).float().mean().item()
    print(f"defect accuracy {acc:.3f}")
    return acc, encoder, checkpoint["model"]


if __name__ == "__main__":
    acc, encoder, saved = finetune(pretrain())
