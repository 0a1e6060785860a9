import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(3)


class FrontEnd(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.filters = nn.Conv1d(1, width, 16, stride=8)
        self.mix = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, wave):
        return self.mix(F.relu(self.filters(wave.unsqueeze(1)))).mean(-1)


class SpeechTask:
    def __init__(self, waves, phones, speakers):
        self.waves, self.phones, self.speakers = waves, phones, speakers
        self.front = FrontEnd(24)
        self.heads = nn.ModuleDict({"phone": nn.Linear(24, 5), "speaker": nn.Linear(24, 3)})
        self.bank = {}
        params = [*self.front.parameters(), *self.heads.parameters()]
        self.opt = torch.optim.RMSprop(params, lr=2e-3)
        self.share = {"phone": 1.0, "speaker": 1.0}

    def losses(self, feats, rows):
        targets = {"phone": self.phones[rows], "speaker": self.speakers[rows]}
        return {k: F.cross_entropy(head(feats), targets[k]) for k, head in self.heads.items()}

    def balance(self, rows):
        size = {}
        for task in self.heads:
            self.losses(self.front(self.waves[rows]), rows)[task].backward()
            size[task] = sum(p.grad.norm() for p in self.front.parameters()).item()
            self.opt.zero_grad()
        total = sum(size.values())
        self.share = {k: 2 * (1 - v / total) for k, v in size.items()}

    def cached(self, key, rows):
        if key not in self.bank:
            self.bank[key] = self.front(self.waves[rows]).detach()
        return self.bank[key]

    def epoch(self, batches):
        total = 0.0
        for key, rows in enumerate(batches):
            parts = self.losses(self.cached(key, rows), rows)
            loss = sum(self.share[k] * v for k, v in parts.items())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / len(batches)


n = 96
phones, speakers = torch.randint(5, (n,)), torch.randint(3, (n,))
time = torch.arange(320) / 320
waves = torch.sin(2 * torch.pi * time * (8 + 6 * phones + 2 * speakers)[:, None]) + 0.2 * torch.randn(n, 320)
task = SpeechTask(waves, phones, speakers)
batches = torch.arange(n).split(24)
task.balance(batches[0])
for e in range(15):
    mean = task.epoch(batches)
    if e % 5 == 4:
        print(f"epoch {e + 1} loss {mean:.4f}")
