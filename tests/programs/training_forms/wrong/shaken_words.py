import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(61)
VOCAB, LENGTH = 50, 10


class Shaker:
    def __init__(self, model, reach=0.5):
        self.model, self.reach, self.backup = model, reach, {}

    def shake(self, key="words"):
        for name, p in self.model.named_parameters():
            if key in name and p.grad is not None:
                self.backup[name] = p.data
                size = p.grad.norm()
                if size > 0:
                    p.data.add_(p.grad, alpha=self.reach / size.item())

    def restore(self):
        for name, p in self.model.named_parameters():
            if name in self.backup:
                p.data = self.backup[name]
        self.backup = {}


class Mood(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, 16)
        self.mix = nn.Conv1d(16, 32, 3, padding=1)
        self.out = nn.Linear(32, 2)

    def forward(self, ids):
        h = F.relu(self.mix(self.words(ids).transpose(1, 2)))
        return self.out(h.amax(-1))


def reviews(n):
    ids = torch.randint(VOCAB, (n, LENGTH))
    return ids, ((ids < 12).sum(1) > (ids > 37).sum(1)).long()


model = Mood()
shaker = Shaker(model)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(120):
    ids, mood = reviews(64)
    opt.zero_grad()
    clean = F.cross_entropy(model(ids), mood)
    clean.backward()
    shaker.shake()
    F.cross_entropy(model(ids), mood).backward()
    shaker.restore()
    opt.step()
    if step % 30 == 29:
        print(f"{step + 1} loss {clean.item():.4f} table {model.words.weight.norm().item():.3f}")
