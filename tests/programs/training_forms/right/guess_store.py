import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(66)
KINDS, DIM = 4, 8
middle = torch.randn(KINDS, DIM) * 1.3


def points(n):
    y = torch.randint(KINDS, (n,))
    return middle[y] + torch.randn(n, DIM), y


def classifier():
    return nn.Sequential(nn.Linear(DIM, 32), nn.ELU(), nn.Dropout(0.2), nn.Linear(32, KINDS))


class SelfTrainer:
    def __init__(self, labelled, bare, chunk=50):
        self.x, self.y = labelled
        self.bare, self.chunk = bare, chunk
        self.store = torch.full((len(bare), KINDS), 0.0)
        self.net = classifier()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=5e-3)

    @torch.no_grad()
    def refresh(self):
        self.net.eval()
        for start in range(0, len(self.bare), self.chunk):
            p = torch.softmax(self.net(self.bare.narrow(0, start, self.chunk)) / 0.5, dim=1)
            self.store.narrow(0, start, self.chunk).copy_(p)
        self.net.train()

    def step(self):
        rows = torch.randint(len(self.bare), (64,))
        known = F.cross_entropy(self.net(self.x), self.y)
        logp = self.net(self.bare[rows]).log_softmax(1)
        guessed = -(self.store[rows] * logp).sum(1).mean()
        loss = known + guessed
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


trainer = SelfTrainer(points(24), points(500)[0])
x_test, y_test = points(500)
for rnd in range(6):
    trainer.refresh()
    for _ in range(15):
        loss = trainer.step()
    with torch.no_grad():
        acc = (trainer.net(x_test).argmax(1) == y_test).float().mean()
    print(f"round {rnd} loss {loss:.4f} accuracy {acc:.3f}")
