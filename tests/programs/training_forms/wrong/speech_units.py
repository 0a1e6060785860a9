import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(51)


class Units(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.book = nn.Parameter(torch.randn(count, width))

    def forward(self, frames):
        flat = frames.flatten(0, 1)
        with torch.no_grad():
            ids = torch.cdist(flat, self.book).min(dim=1).indices
        unit = self.book.index_select(0, ids).view_as(frames)
        pull = F.mse_loss(unit, frames.detach()) + 0.1 * F.mse_loss(frames, unit.detach())
        return unit, pull, ids


class Codec(nn.Module):
    def __init__(self, mels=20, width=8, count=16):
        super().__init__()
        self.encode = nn.GRU(mels, width, batch_first=True)
        self.units = Units(count, width)
        self.decode = nn.GRU(width, 32, batch_first=True)
        self.mels = nn.Linear(32, mels)

    def forward(self, frames):
        hidden, _ = self.encode(frames)
        unit, pull, ids = self.units(hidden)
        out, _ = self.decode(unit)
        return self.mels(out), pull, ids


def utterances(n, steps=15, mels=20):
    phones = torch.randint(6, (n, steps // 3)).repeat_interleave(3, dim=1)
    return PHONES[phones] + 0.2 * torch.randn(n, steps, mels)


PHONES = torch.randn(6, 20)
codec = Codec()
opt = torch.optim.Adam(codec.parameters(), lr=8e-3)
for step in range(1, 81):
    frames = utterances(24)
    again, pull, ids = codec(frames)
    rebuild = F.l1_loss(again, frames)
    loss = rebuild + pull
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step} rebuild {rebuild.item():.4f} pull {pull.item():.4f} units in use {ids.unique().numel()}")
