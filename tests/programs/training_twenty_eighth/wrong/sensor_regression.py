"""Regression of a plant's output on its sensors; the averaged weights are scored during the run."""
import torch
from torch import nn
from torch.nn import functional as F

SENSORS = 10


def make_readings(count, generator):
    x = torch.randn(count, SENSORS, generator=generator)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] - 0.5 * x[:, 3] ** 2
    return x, (y + 0.3 * torch.randn(count, generator=generator)).unsqueeze(1)


class Plant(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(SENSORS, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x)


class AveragedWeights:
    """Exponential moving average of a model's parameters."""

    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.stored = {}

    @torch.no_grad()
    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name].lerp_(p, 1 - self.decay)

    def apply(self):
        """Put the averages into the model."""
        self.stored = {name: p.data for name, p in self.model.named_parameters()}
        for name, p in self.model.named_parameters():
            p.data.copy_(self.shadow[name])

    def restore(self):
        """Put the training weights back."""
        for name, p in self.model.named_parameters():
            p.data.copy_(self.stored[name])
        self.stored = {}


@torch.no_grad()
def score(model, data):
    model.eval()
    x, y = data
    loss = F.mse_loss(model(x), y).item()
    model.train()
    return loss


def train(steps=240, every=10, decay=0.98):
    generator = torch.Generator().manual_seed(21)
    x, y = make_readings(2000, generator)
    valid = make_readings(500, generator)

    model = Plant()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.3, total_iters=steps)
    average = AveragedWeights(model, decay)
    best = float("inf")
    history = []

    for step in range(1, steps + 1):
        idx = torch.randint(0, len(x), (64,), generator=generator)
        loss = F.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        average.update()

        if step % every == 0:
            raw = score(model, valid)
            average.apply()
            averaged = score(model, valid)
            average.restore()
            best = min(best, averaged)
            history.append((step, raw, averaged))
            if step % 40 == 0:
                print(f"step {step:4d}  batch {loss.item():.4f}  valid {raw:.4f}  valid (averaged) {averaged:.4f}")
    print(f"best averaged score {best:.4f}")
    return model, average, history


if __name__ == "__main__":
    torch.manual_seed(8)
    model, average, history = train()
