"""Adapting a gesture classifier from one sensor to another with a self-ensembling teacher."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class GestureNet(nn.Module):
    def __init__(self, channels=6, length=24, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(channels, 16, 5, padding=2, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 24, 3, padding=1, bias=False), nn.BatchNorm1d(24), nn.ReLU(), nn.AdaptiveAvgPool1d(3),
        )
        self.classifier = nn.Linear(24 * 3, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class SensorWorld:
    """Two sensors that see the same gestures with different gain, bias and noise."""

    def __init__(self, generator, classes=5, channels=6, length=24):
        self.generator, self.classes = generator, classes
        self.shape = (channels, length)
        self.patterns = F.avg_pool1d(torch.randn(classes, channels, length + 4, generator=generator), 5, 1) * 2.0
        self.gain = {"source": torch.full((channels, 1), 3.0),
                     "target": 3.0 + 1.5 * torch.rand(channels, 1, generator=generator)}
        self.bias = {"source": torch.full((channels, 1), 9.0),
                     "target": 9.0 + 1.5 * torch.randn(channels, 1, generator=generator)}

    def draw(self, sensor, n):
        y = torch.randint(0, self.classes, (n,), generator=self.generator)
        x = self.patterns[y] + 0.7 * torch.randn(n, *self.shape, generator=self.generator)
        return self.gain[sensor] * x + self.bias[sensor], y


def augment(x):
    scale = 1 + 0.1 * torch.randn(len(x), 1, 1)
    return scale * x + 0.3 * torch.randn_like(x)


class SelfEnsemble:
    def __init__(self, student, decay=0.97, threshold=0.8, weight=1.0):
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False).eval()
        self.decay, self.threshold, self.weight = decay, threshold, weight
        self.optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
        self.steps = 0

    @torch.no_grad()
    def update_teacher(self):
        self.steps += 1
        decay = min(self.decay, 1 - 1 / (self.steps + 1))
        for average, current in zip(self.teacher.parameters(), self.student.parameters()):
            average.lerp_(current, 1 - decay)

    def train_step(self, source, target, ramp):
        self.student.train()
        x, y = source
        supervised = F.cross_entropy(self.student(augment(x)), y)
        with torch.no_grad():
            belief = self.teacher(augment(target)).softmax(1)
        confident = (belief.max(1).values > self.threshold).float()
        guess = self.student(augment(target)).softmax(1)
        distance = (guess - belief).square().sum(1)
        consistency = (distance * confident).mean()
        loss = supervised + self.weight * ramp * consistency
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.update_teacher()
        return supervised.item(), confident.mean().item()


@torch.no_grad()
def accuracy(model, data):
    mode = model.training
    model.eval()
    result = (model(data[0]).argmax(1) == data[1]).float().mean().item()
    model.train(mode)
    return result


def main():
    torch.manual_seed(9)
    world = SensorWorld(torch.Generator().manual_seed(1))
    test = {sensor: world.draw(sensor, 400) for sensor in ("source", "target")}
    ensemble = SelfEnsemble(GestureNet())
    steps = 84
    for step in range(1, steps + 1):
        source, (target, _) = world.draw("source", 48), world.draw("target", 48)
        supervised, share = ensemble.train_step(source, target, min(1.0, step / 60))
        if step % 21 == 0:
            print(f"step {step:4d}  supervised {supervised:.3f}  confident {share:.2f}")
    scores = {sensor: accuracy(ensemble.teacher, data) for sensor, data in test.items()}
    for sensor, value in scores.items():
        print(f"teacher on {sensor}: accuracy {value:.3f}")
    return ensemble, scores


if __name__ == "__main__":
    main()
