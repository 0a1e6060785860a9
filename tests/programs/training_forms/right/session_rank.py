import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(11)
N_ITEMS, DIM = 60, 16


class SessionRanker(nn.Module):
    def __init__(self, n_items, dim):
        super().__init__()
        self.items = nn.Embedding(n_items, dim)
        self.reader = nn.GRU(dim, dim, batch_first=True)
        self.score = nn.Linear(dim, n_items, bias=False)
        nn.init.normal_(self.items.weight, std=0.1)
        self.tie()

    def tie(self):
        self.score.weight = self.items.weight

    def forward(self, clicks):
        _, last = self.reader(self.items(clicks))
        return self.score(last[0])


def make_sessions(count, length):
    start = torch.randint(N_ITEMS, (count, 1))
    stride = torch.randint(1, 4, (count, 1))
    return (start + stride * torch.arange(length + 1)) % N_ITEMS


def hit_rate(model, sessions, k=5):
    with torch.no_grad():
        top = model(sessions[:, :-1]).topk(k, dim=1).indices
    return (top == sessions[:, -1:]).any(1).float().mean().item()


train, test = make_sessions(512, 6), make_sessions(128, 6)
model = SessionRanker(N_ITEMS, DIM)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for epoch in range(6):
    for batch in train[torch.randperm(len(train))].split(64):
        loss = F.cross_entropy(model(batch[:, :-1]), batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} hit@5 {hit_rate(model, test):.3f}")
