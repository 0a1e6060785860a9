import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(19)
STEPS, BANDS, WORDS = 24, 10, 5


class Spotter(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(BANDS, width, 5), nn.Conv1d(width, width, 3)])
        self.out = nn.Linear(width, WORDS)

    def forward(self, frames):
        h = frames.flatten(1).unflatten(1, (BANDS, STEPS))
        for layer in self.layers:
            h = F.gelu(layer(h))
        return self.out(h.amax(2))


def clips(n):
    word = torch.randint(WORDS, (n,))
    start = torch.randint(STEPS - 8, (n,))
    frames = 0.5 * torch.randn(n, STEPS, BANDS)
    for i, (w, s) in enumerate(zip(word.tolist(), start.tolist())):
        for k in range(8):
            frames[i, s + k, (2 * w + k * (1 + w % 2)) % BANDS] += 1.5
    return {"frames": frames, "word": word}


def take(table, rows):
    return {k: v[rows] for k, v in table.items()}


def train(net, table, steps):
    opt = torch.optim.Adamax(net.parameters(), lr=5e-3)
    for step in range(1, steps + 1):
        batch = take(table, torch.randint(len(table["word"]), (48,)))
        loss = F.cross_entropy(net(batch["frames"]), batch["word"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


table = clips(700)
net = Spotter()
train(net, take(table, slice(0, 550)), 160)
test = take(table, slice(550, None))
with torch.no_grad():
    hit = (net(test["frames"]).argmax(1) == test["word"]).float().mean()
print(f"test accuracy {hit:.3f}")
