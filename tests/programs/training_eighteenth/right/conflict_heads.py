"""Two-task wearable-sensor model (activity class, heart rate) trained with projected gradients.

When the two tasks pull the shared trunk in opposing directions, each gradient loses its component along the
other. The heads belong to one task each and get their own gradient untouched.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def recordings(n, gen):
    """3-axis accelerometer windows; cadence drives both the activity and, with intensity, the heart rate."""
    activity = torch.randint(3, (n,), generator=gen)
    cadence = torch.tensor([0.5, 2.0, 3.5])[activity] + 0.4 * torch.randn(n, generator=gen)
    force = 0.5 + torch.rand(n, generator=gen)
    t = torch.linspace(0, 3, 64)
    phase = 6.28 * torch.rand(n, 3, 1, generator=gen)
    x = force[:, None, None] * torch.sin(6.28 * cadence[:, None, None] * t + phase)
    x = x + 0.3 * torch.randn(n, 3, 64, generator=gen)
    rate = 0.5 * cadence + 1.2 * force * (activity == 1) - 1.0 * force * (activity == 2)
    return x, activity, (rate - 1.06) / 0.89


class SensorNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(3, 16, 7, stride=2, padding=3), nn.ReLU(), nn.Conv1d(16, 24, 7, stride=2, padding=3), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, 32), nn.ReLU())
        self.activity = nn.Linear(32, 3)
        self.rate = nn.Linear(32, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.activity(h), self.rate(h).squeeze(-1)


class ProjectedGradients:
    """PCGrad: per-task gradients of `shared`, projected pairwise in random order and summed into `.grad`."""

    def __init__(self, shared, private):
        self.shared = list(shared)
        self.private = [list(p) for p in private]
        self.conflicts, self.calls = 0, 0

    def write(self, losses):
        rows = []
        for i, loss in enumerate(losses):
            last = i == len(losses) - 1
            grads = torch.autograd.grad(loss, self.shared + self.private[i], retain_graph=not last)
            rows.append(torch.cat([g.flatten() for g in grads[:len(self.shared)]]))
            for p, g in zip(self.private[i], grads[len(self.shared):]):
                p.grad = g
        merged = torch.zeros_like(rows[0])
        for i, row in enumerate(rows):
            row = row.clone()
            for j in torch.randperm(len(rows)).tolist():
                dot = row @ rows[j]
                if j != i and dot < 0:
                    row -= dot / rows[j].square().sum() * rows[j]
                    self.conflicts += 1
            merged += row
        self.calls += 1
        for p, g in zip(self.shared, merged.split([p.numel() for p in self.shared])):
            p.grad = g.view_as(p)


class Trainer:
    def __init__(self, model, lr=4e-3, batch=64):
        self.model, self.batch = model, batch
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.merge = ProjectedGradients(
            model.trunk.parameters(), [model.activity.parameters(), model.rate.parameters()])

    def fit(self, data, epochs):
        for epoch in range(epochs):
            sums = torch.zeros(2)
            for idx in torch.randperm(len(data[0])).split(self.batch):
                x, activity, rate = (d[idx] for d in data)
                logits, pred = self.model(x)
                losses = torch.stack([F.cross_entropy(logits, activity), F.smooth_l1_loss(pred, rate)])
                self.merge.write(losses)
                self.optimizer.step()
                sums += losses.detach() * len(idx)
            if epoch % 4 == 3:
                print(f"epoch {epoch + 1}: activity {sums[0] / len(data[0]):.4f} rate {sums[1] / len(data[0]):.4f}")

    @torch.no_grad()
    def evaluate(self, x, activity, rate):
        logits, pred = self.model(x)
        return (logits.argmax(1) == activity).float().mean().item(), F.mse_loss(pred, rate).item()


torch.manual_seed(0)
gen = torch.Generator().manual_seed(2)
train, test = recordings(1280, gen), recordings(400, gen)
trainer = Trainer(SensorNet())
trainer.fit(train, epochs=16)
accuracy, mse = trainer.evaluate(*test)
print(f"test: activity accuracy {accuracy:.3f}, heart rate mse {mse:.4f}")
print(f"conflicting gradients: {trainer.merge.conflicts} projections in {trainer.merge.calls} steps")
