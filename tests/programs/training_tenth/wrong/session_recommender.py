"""Next-item recommender for web-shop sessions: items bought in a fixed rhythm, so position in the session matters."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 8
ITEMS = 40
GROUPS = 4
LENGTH = 8
DIM = 32
EPOCHS = 12
BATCH = 128


def make_sessions(n=3000):
    """The item at the slot (user's lag) from the end decides the next item; lags are marked by the first item."""
    rng = np.random.default_rng(SEED)
    history = rng.integers(GROUPS, ITEMS, (n, LENGTH))
    lag = rng.integers(0, GROUPS, n)
    history[:, 0] = lag
    source = history[np.arange(n), LENGTH - 1 - lag]
    target = GROUPS + (source - GROUPS + 7) % (ITEMS - GROUPS)
    return torch.from_numpy(history), torch.from_numpy(target)


class SlotAttention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.merge = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.merge(a)
        return x + self.mlp(x)


class SessionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.item = nn.Embedding(ITEMS, DIM)
        self.slot = nn.Parameter(torch.zeros(LENGTH, DIM)).unsqueeze(0)
        self.popularity = nn.Parameter(torch.zeros(ITEMS))
        self.blocks = nn.Sequential(SlotAttention(DIM), SlotAttention(DIM))
        self.head = nn.Linear(DIM, DIM)
        nn.init.normal_(self.item.weight, std=0.3)

    def forward(self, history):
        x = self.item(history) + self.slot
        x = self.blocks(x)[:, -1]
        return self.head(x) @ self.item.weight.T + self.popularity


@torch.no_grad()
def hit_rate(model, history, target, k=1):
    model.eval()
    top = model(history).topk(k, dim=1).indices
    model.train()
    return (top == target[:, None]).any(1).float().mean().item()


def main():
    torch.manual_seed(SEED)
    history, target = make_sessions()
    train, test = slice(0, 2600), slice(2600, None)
    model = SessionModel()
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=EPOCHS * (2600 // BATCH))
    for epoch in range(EPOCHS):
        total = 0.0
        for index in torch.randperm(2600)[: 2600 // BATCH * BATCH].split(BATCH):
            loss = F.cross_entropy(model(history[train][index]), target[train][index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        if (epoch + 1) % 4 == 0:
            h1, h5 = (hit_rate(model, history[test], target[test], k) for k in (1, 5))
            print(f"epoch {epoch + 1}: loss {total / (2600 // BATCH):.3f} hit@1 {h1:.3f} hit@5 {h5:.3f}")
    return model, optimizer, h1


if __name__ == "__main__":
    model, optimizer, h1 = main()
