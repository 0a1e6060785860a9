"""Weekly demand per store with an attention encoder on top of fixed store profiles."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

STORES, WEEKS, WINDOW, WIDTH = 20, 220, 16, 24
MAX_NORM = 0.5


class DemandNet(nn.Module):
    def __init__(self, profiles):
        super().__init__()
        self.profile = nn.Embedding.from_pretrained(profiles, freeze=True)
        self.inp = nn.Linear(2, WIDTH)
        self.store = nn.Linear(profiles.shape[1], WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(WINDOW, WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, store, history):
        h = self.inp(history) + self.position + self.store(self.profile(store))[:, None]
        q = self.norm1(h)
        h = h + self.attention(q, q, q, need_weights=False)[0]
        h = h + self.feed(self.norm2(h))
        return self.out(h[:, -1]).squeeze(-1)


def make_sales():
    """Normalised sales with a season per store and rare clearance weeks."""
    profiles = torch.randn(STORES, 6)
    week = torch.arange(WEEKS).float()
    season = torch.sin(2 * math.pi * week / 26 + profiles[:, :1]) * (1 + 0.3 * profiles[:, 1:2])
    sales = season + 0.2 * torch.randn(STORES, WEEKS)
    clearance = (torch.rand(STORES, WEEKS) < 0.01).float()
    return profiles, sales + 8.0 * clearance


def draw(sales, low, high, n):
    store = torch.randint(0, STORES, (n,))
    start = torch.randint(low, high - WINDOW, (n,))
    index = start[:, None] + torch.arange(WINDOW)
    seen = sales[store[:, None], index].clamp(max=4.0)
    season = torch.sin(2 * math.pi * index.float() / 26)
    return store, torch.stack([seen, season], dim=-1), sales[store, start + WINDOW]


@torch.no_grad()
def median_error(model, data):
    model.eval()
    store, history, target = data
    error = (model(store, history) - target).abs().median().item()
    model.train()
    return error


def main():
    torch.manual_seed(14)
    profiles, sales = make_sales()
    validation = draw(sales, 170, WEEKS, 300)

    model = DemandNet(profiles)
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(trainable, lr=0.03, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))

    running = None
    for step in range(160):
        store, history, target = draw(sales, 0, 170, 32)
        loss = F.mse_loss(model(store, history), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainable, MAX_NORM)
        optimizer.step()
        scheduler.step()
        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {running:.3f}  lr {scheduler.get_last_lr()[0]:.4f}")

    error = median_error(model, validation)
    last = (validation[1][:, -1, 0] - validation[2]).abs().median().item()
    print(f"median error {error:.3f}  (last week as forecast: {last:.3f})")
    return model, error


if __name__ == "__main__":
    model, error = main()
