from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(89)


class Rung(nn.Module):
    def __init__(self, width, gap, thin):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=gap, dilation=gap)
        self.thin = thin

    def forward(self, h):
        return h + self.thin(F.relu(self.conv(h)))


class Keyword(nn.Module):
    def __init__(self, bands, words, width=16):
        super().__init__()
        thin = partial(F.dropout, p=0.4)
        self.enter = nn.Conv1d(bands, width, 1)
        self.ladder = nn.Sequential(*(Rung(width, gap, thin) for gap in (1, 2, 4)))
        self.leave = nn.Linear(width, words)

    def forward(self, x):
        return self.leave(self.ladder(self.enter(x)).amax(dim=-1))


class Speech:
    def __init__(self, words, bands, length):
        self.shapes = torch.randn(words, bands, 5)
        self.bands, self.length = bands, length

    def draw(self, n):
        word = torch.randint(0, len(self.shapes), (n,))
        x = 0.8 * torch.randn(n, self.bands, self.length)
        for clip, w in zip(x, word):
            start = int(torch.randint(0, self.length - 5, ()))
            clip[:, start : start + 5] += self.shapes[w]
        return x, word


def judge(net, x, word):
    net.eval()
    with torch.inference_mode():
        logits = net(x)
    net.train()
    return F.cross_entropy(logits, word).item(), (logits.argmax(1) == word).float().mean().item()


speech = Speech(words=5, bands=6, length=20)
net = Keyword(6, 5)
held_out = speech.draw(200)
optimizer = torch.optim.Adam(net.parameters(), lr=6e-3)
for step in range(90):
    x, word = speech.draw(32)
    loss = F.cross_entropy(net(x), word)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        error, share = judge(net, *held_out)
        print(f"step {step + 1}  train {loss.item():.4f}  held out {error:.4f}  right {share:.3f}")
