"""Forecast of the next demand of a shop from its last days, with a recurrent net on top of frozen day embeddings."""
import torch
from torch import nn
from torch.nn import functional as F

DAYS, HISTORY = 7, 14
MICRO_BATCH, ACCUMULATE = 16, 4
MAX_NORM = 1.0


def make_demand(count, generator):
    """Weekly demand with a trend; a promotion makes a few of the targets very large."""
    start = torch.randint(0, DAYS, (count, 1), generator=generator)
    day = (start + torch.arange(HISTORY + 1)) % DAYS
    profile = torch.tensor([0.2, 0.1, 0.3, 0.5, 0.9, 1.4, 1.1])
    level = 0.5 + torch.rand(count, 1, generator=generator)
    demand = level * profile[day] + 0.05 * torch.randn(count, HISTORY + 1, generator=generator)
    target = demand[:, -1].clone()
    promoted = torch.rand(count, generator=generator) < 0.01
    target[promoted] *= 40
    return day[:, :-1], demand[:, :-1], target, promoted


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.day = nn.Embedding(DAYS, DAYS)
        with torch.no_grad():
            self.day.weight.copy_(torch.eye(DAYS))
        self.day.weight.requires_grad_(False)
        self.cell = nn.GRU(DAYS + 1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, day, demand):
        inputs = torch.cat([self.day(day), demand.unsqueeze(-1)], dim=-1)
        states, _ = self.cell(inputs)
        return self.head(states[:, -1]).squeeze(-1)


def micro_batches(data, generator):
    order = torch.randperm(len(data[0]), generator=generator)
    for start in range(0, len(order), MICRO_BATCH):
        idx = order[start:start + MICRO_BATCH]
        yield [part[idx] for part in data]


@torch.no_grad()
def evaluate(model, data):
    """Mean absolute error on the days without a promotion."""
    model.eval()
    day, demand, target, promoted = data
    error = (model(day, demand) - target).abs()
    model.train()
    return error[~promoted].mean().item()


def train(epochs=3):
    generator = torch.Generator().manual_seed(31)
    data = make_demand(1536, generator)
    valid = make_demand(512, generator)

    model = Forecaster()
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(trainable, lr=0.15, momentum=0.9)
    updates = epochs * len(data[0]) // (MICRO_BATCH * ACCUMULATE)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.15, total_steps=updates, pct_start=0.2, cycle_momentum=False)

    errors = []
    for epoch in range(epochs):
        running = 0.0
        optimizer.zero_grad()
        for i, (day, demand, target, _) in enumerate(micro_batches(data, generator)):
            loss = F.mse_loss(model(day, demand), target)
            (loss / ACCUMULATE).backward()
            running += loss.item()
            if (i + 1) % ACCUMULATE == 0:
                nn.utils.clip_grad_norm_(trainable, MAX_NORM)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        errors.append(evaluate(model, valid))
        print(f"epoch {epoch}  train loss {running / (i + 1):.4f}  mean error {errors[-1]:.4f}")
    return model, errors


if __name__ == "__main__":
    torch.manual_seed(14)
    model, errors = train()
