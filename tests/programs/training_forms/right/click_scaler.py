import torch
import torch.nn.functional as F
from torch import nn


class ClickNet(nn.Module):
    def __init__(self, cards, width):
        super().__init__()
        self.fields = nn.ModuleList(nn.Embedding(c, width) for c in cards)
        self.deep = nn.Sequential(nn.Linear(width * len(cards), 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids):
        parts = [table(column) for table, column in zip(self.fields, ids.unbind(1))]
        return self.deep(torch.cat(parts, 1)).squeeze(1)


@torch.no_grad()
def limit(params, most):
    grads = [p.grad for p in params if p.grad is not None]
    size = torch.stack(torch._foreach_norm(grads)).norm()
    if size > most:
        torch._foreach_mul_(grads, most / size)
    return size


class Engine:
    def __init__(self, model, most=1.0):
        self.model, self.most = model, most
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.8)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)

    def update(self, ids, click):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.binary_cross_entropy_with_logits(self.model(ids).float(), click)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        size = limit(list(self.model.parameters()), self.most)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item(), size.item()


def impressions(n, cards):
    ids = torch.stack([torch.randint(c, (n,)) for c in cards], 1)
    taste = [torch.randn(c) for c in cards]
    logit = sum(t[column] for t, column in zip(taste, ids.unbind(1)))
    return ids, (logit + 0.5 * torch.randn(n) > 0).float()


def main():
    torch.manual_seed(23)
    cards = (40, 12, 25)
    ids, click = impressions(4000, cards)
    engine = Engine(ClickNet(cards, 8))
    for epoch in range(6):
        total = 0.0
        for rows in torch.randperm(len(ids)).split(200):
            loss, size = engine.update(ids[rows], click[rows])
            total += loss
        print(f"epoch {epoch} log loss {total / 20:.4f}")


if __name__ == "__main__":
    main()
