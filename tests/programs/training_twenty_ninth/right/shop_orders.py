"""Order counts per article and day: one recurrent cell for past and future, sparse article table, averaged weights."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

ARTICLES, DAYS, PAST, FUTURE, ACCUMULATE = 60, 160, 10, 7, 2


class OrderNet(nn.Module):
    def __init__(self, hidden=32, width=8):
        super().__init__()
        self.article = nn.Embedding(ARTICLES, width, sparse=True)
        self.cell = nn.GRUCell(1 + 2 + width, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.level = nn.Linear(hidden, 1)

    def forward(self, article, past, clock, future=None, teacher=0.0):
        with torch.no_grad():
            scale = 1.0 + past.mean(1, keepdim=True)
        table = self.article(article)
        h = table.new_zeros(past.shape[0], self.cell.hidden_size)
        rates = past.new_zeros(past.shape[0], FUTURE)
        value = past[:, 0] / scale[:, 0]
        for t in range(1, PAST + FUTURE):
            h = self.cell(torch.cat([value[:, None], clock[:, t], table], dim=1), h)
            if t < PAST:
                value = past[:, t] / scale[:, 0]
                continue
            k = t - PAST
            rate = F.softplus(self.level(self.norm(h)).squeeze(1))
            rates[:, k] = rate
            value = rate.detach()
            if future is not None:
                keep = torch.rand_like(value) < teacher
                value = torch.where(keep, future[:, k] / scale[:, 0], value)
        return rates * scale


class WeightAverage:
    """Exponential average of all weights; swapped in for the validation and out again."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.average = copy.deepcopy(model.state_dict())

    def update(self, model):
        for name, value in model.state_dict().items():
            self.average[name].lerp_(value, 1 - self.decay)

    def validate(self, model, data):
        own = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(self.average)
        article, past, clock, future = data
        with torch.no_grad():
            rates = model(article, past, clock)
        model.load_state_dict(own)
        return F.poisson_nll_loss(rates, future, log_input=False).item(), (rates - future).abs().mean().item()


def make_orders():
    day = torch.arange(DAYS).float()
    base = 2 + 8 * torch.rand(ARTICLES, 1)
    peak = 2 * math.pi * torch.randint(0, 7, (ARTICLES, 1)) / 7
    rate = base * torch.exp(0.8 * torch.sin(2 * math.pi * day / 7 + peak))
    clock = torch.stack([torch.sin(2 * math.pi * day / 7), torch.cos(2 * math.pi * day / 7)], dim=-1)
    return torch.poisson(rate), clock


def draw(orders, clock, low, high, n):
    article = torch.randint(0, ARTICLES, (n,))
    start = torch.randint(low, high - PAST - FUTURE + 1, (n,))
    index = start[:, None] + torch.arange(PAST + FUTURE)
    past, future = orders[article[:, None], index].split([PAST, FUTURE], dim=1)
    return article, past, clock[index], future


def main():
    torch.manual_seed(12)
    orders, clock = make_orders()
    validation = draw(orders, clock, 120, DAYS, 200)
    model = OrderNet()
    dense = [p for name, p in model.named_parameters() if not name.startswith("article.")]
    optimizers = [torch.optim.Adam(dense, lr=8e-3), torch.optim.SparseAdam(model.article.parameters(), lr=2e-2)]
    average = WeightAverage(model)
    steps = 45
    for step in range(steps):
        teacher = 1.0 - step / steps
        total = 0.0
        for _ in range(ACCUMULATE):
            article, past, days, future = draw(orders, clock, 0, 120, 24)
            rates = model(article, past, days, future, teacher)
            loss = F.poisson_nll_loss(rates, future, log_input=False) / ACCUMULATE
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(dense, 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        average.update(model)
        if step % 15 == 14:
            nll, mae = average.validate(model, validation)
            print(f"step {step:3d}  loss {total:.3f}  averaged weights: nll {nll:.3f}  MAE {mae:.3f}")
    last_week = (validation[1][:, -7:] - validation[3]).abs().mean().item()
    print(f"last week as forecast: MAE {last_week:.3f}")
    return model


if __name__ == "__main__":
    model = main()
