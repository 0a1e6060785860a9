"""Three quantities of a building from its weather and use: heat demand, power demand and air quality."""
import torch
from torch import nn
from torch.nn import functional as F

FEATURES = 8
TASKS = ("heat", "power", "air")


def make_buildings(count, generator):
    x = torch.randn(count, FEATURES, generator=generator)
    noise = torch.randn(count, 3, generator=generator)
    heat = 1.5 * x[:, 0] - x[:, 1] + 0.5 * x[:, 0] * x[:, 2] + 1.8 * noise[:, 0]
    power = torch.tanh(x[:, 3] + x[:, 4]) + 0.1 * noise[:, 1]
    air = 0.8 * torch.sin(x[:, 5]) + 0.4 * x[:, 6] + 0.1 * noise[:, 2]
    return x, {"heat": heat, "power": power, "air": air}


class BuildingModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(FEATURES, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
        )
        self.heads = nn.ModuleDict({task: nn.Linear(hidden, 1) for task in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return {task: head(h).squeeze(1) for task, head in self.heads.items()}


class LossBalancer:
    """Weights of the tasks from their current losses, so that a task that lags gets a larger share of the update."""

    def __init__(self, temperature=1.0):
        self.temperature = temperature
        self.last = None

    def __call__(self, losses):
        stacked = torch.stack([losses[task] for task in TASKS])
        weights = torch.softmax(stacked / self.temperature, dim=0)
        self.last = dict(zip(TASKS, weights.tolist()))
        return len(TASKS) * (weights * stacked).sum()


def task_losses(model, x, targets):
    predictions = model(x)
    return {task: F.mse_loss(predictions[task], targets[task]) for task in TASKS}


@torch.no_grad()
def evaluate(model, x, targets):
    model.eval()
    losses = {task: loss.item() for task, loss in task_losses(model, x, targets).items()}
    model.train()
    return losses


def train(steps=300, batch=128):
    generator = torch.Generator().manual_seed(9)
    x, targets = make_buildings(3000, generator)
    x_valid, targets_valid = make_buildings(600, generator)

    model = BuildingModel()
    balancer = LossBalancer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)

    for step in range(1, steps + 1):
        idx = torch.randint(0, len(x), (batch,), generator=generator)
        losses = task_losses(model, x[idx], {task: t[idx] for task, t in targets.items()})
        loss = balancer(losses)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 60 == 0:
            valid = evaluate(model, x_valid, targets_valid)
            shown = "  ".join(f"{task} {valid[task]:.3f} (w {balancer.last[task]:.2f})" for task in TASKS)
            print(f"step {step:4d}  {shown}")

    final = evaluate(model, x_valid, targets_valid)
    spread = {task: targets_valid[task].var().item() for task in TASKS}
    for task in TASKS:
        print(f"{task:6s} explained variance {1 - final[task] / spread[task]:.3f}")
    return model, final, spread


if __name__ == "__main__":
    torch.manual_seed(2)
    model, final, spread = train()
