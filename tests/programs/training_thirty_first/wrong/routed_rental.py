"""Bike rentals per hour from weather and time, predicted by a mixture of experts with top-1 routing."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)

FEATURES, WIDTH, EXPERTS = 8, 24, 6
TRAIN, TEST, BATCH, EPOCHS = 1024, 512, 64, 10
BALANCE_WEIGHT = 0.05


def make_hours(count):
    """Hours with a regime each (workday, weekend, rain, night) that changes how the weather acts."""
    hour = torch.rand(count) * 24
    weekend = (torch.rand(count) < 0.3).float()
    rain = (torch.rand(count) < 0.25).float()
    temperature, wind, humidity = torch.randn(3, count)
    night = ((hour < 6) | (hour > 22)).float()
    angle = 2 * math.pi * hour / 24
    commute = torch.exp(-((hour - 8) / 1.5) ** 2) + torch.exp(-((hour - 17.5) / 1.5) ** 2)
    leisure = torch.exp(-((hour - 14) / 3.5) ** 2)
    demand = (1 - weekend) * 2.0 * commute + weekend * 1.8 * leisure * (1 + 0.5 * temperature)
    demand = demand * (1 - 0.6 * rain) + 0.3 * temperature * (1 - night) - 0.2 * rain * wind
    demand = demand + 0.1 * torch.randn(count)
    columns = [angle.sin(), angle.cos(), (2 * angle).sin(), weekend, rain, temperature, wind, humidity]
    return torch.stack(columns, dim=1), demand.unsqueeze(1)


class Expert(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))


class RoutedNet(nn.Module):
    """The router sends each row to one expert; the output is scaled by the probability of the choice."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(FEATURES, EXPERTS)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def forward(self, x):
        probs = F.softmax(self.router(x), dim=1)
        gate, choice = probs.max(dim=1)
        output = x.new_zeros(len(x), 1)
        for index, expert in enumerate(self.experts):
            rows = (choice == index).nonzero().squeeze(1)
            if len(rows):
                output = output.index_add(0, rows, gate[rows].unsqueeze(1) * expert(x[rows]))
        load = F.one_hot(choice, EXPERTS).float().mean(dim=0)
        balance = EXPERTS * (load * load).sum()
        return output, balance, load


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        output, _, load = model(x)
        error = F.mse_loss(output, y).item()
    model.train()
    return error, load


train_x, train_y = make_hours(TRAIN)
test_x, test_y = make_hours(TEST)
model = RoutedNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-4)
total_steps = EPOCHS * (TRAIN // BATCH)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=total_steps)

for epoch in range(EPOCHS):
    fit_sum, balance_sum = 0.0, 0.0
    for rows in torch.randperm(TRAIN).split(BATCH):
        output, balance, _ = model(train_x[rows])
        fit = F.mse_loss(output, train_y[rows])
        loss = fit + BALANCE_WEIGHT * balance
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        fit_sum += fit.item() * len(rows) / TRAIN
        balance_sum += balance.item() * len(rows) / TRAIN
    if (epoch + 1) % 2 == 0:
        error, load = evaluate(model, test_x, test_y)
        print(f"epoch {epoch + 1:2d}  fit {fit_sum:.4f}  balance {balance_sum:.3f}  test {error:.4f}")

error, load = evaluate(model, test_x, test_y)
print("share of each expert:", " ".join(f"{share:.2f}" for share in load.tolist()))
