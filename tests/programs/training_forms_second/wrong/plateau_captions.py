import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(13)


class NextChar(nn.Module):
    def __init__(self, chars=20, dim=32):
        super().__init__()
        self.emb = nn.Embedding(chars, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, chars)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


class DropOnce:
    def __init__(self, optimizer, scheduler, floor, factor=0.2):
        self.optimizer, self.scheduler = optimizer, scheduler
        self.floor, self.factor = floor, factor
        self.done = False

    def __call__(self, value):
        if self.done or value > self.floor:
            return
        for group in self.optimizer.param_groups:
            group["lr"] *= self.factor
        self.done = True
        print("lower the rates")


def warm(step, length=20):
    return min(1.0, (step + 1) / length)


def stream(count=160, length=16, chars=20):
    jump = torch.randperm(chars)
    rows = [torch.randint(chars, (count,))]
    for _ in range(length):
        stay = torch.rand(count) < 0.15
        rows.append(torch.where(stay, torch.randint(chars, (count,)), jump[rows[-1]]))
    return torch.stack(rows, 1)


text = stream()
train, valid = text[:128], text[128:]
model = NextChar()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warm)
on_valid = DropOnce(optimizer, scheduler, floor=1.2)


def score(ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


for epoch in range(12):
    for ids in train[torch.randperm(len(train))].split(16):
        loss = score(ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        current = score(valid).item()
    print(f"epoch {epoch + 1} train {loss.item():.4f} valid {current:.4f}")
    on_valid(current)
