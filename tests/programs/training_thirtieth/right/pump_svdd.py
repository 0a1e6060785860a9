"""Soft-boundary Deep SVDD (Ruff et al., 2018) on the sensor readings of pumps: fit a small ball around normal data."""
import torch
import torch.nn as nn
import torch.nn.functional as F

N_SENSORS = 20
NU = 0.1
EPOCHS = 16
WARM_UP = 4
BATCH = 128


def make_readings(n, generator, faulty=False):
    """Normal readings lie near a three-dimensional surface; a fault breaks the relation of some sensors."""
    mix = torch.randn(3, N_SENSORS, generator=torch.Generator().manual_seed(23))
    state = torch.randn(n, 3, generator=generator)
    readings = torch.tanh(state @ mix) + 0.1 * torch.randn(n, N_SENSORS, generator=generator)
    if faulty:
        readings[:, :6] = readings[torch.randperm(n, generator=generator), :6]
    return readings


class Encoder(nn.Module):
    """No biases and no affine norms, so that no layer can map everything to a constant."""

    def __init__(self, out=8):
        super().__init__()
        self.first = nn.Linear(N_SENSORS, 64, bias=False)
        self.norm = nn.LayerNorm(64, elementwise_affine=False)
        self.second = nn.Linear(64, 32, bias=False)
        self.last = nn.Linear(32, out, bias=False)

    def forward(self, x):
        x = F.leaky_relu(self.norm(self.first(x)), 0.1)
        return self.last(F.leaky_relu(self.second(x), 0.1))


class DeepSVDD:
    def __init__(self, net, nu):
        self.net = net
        self.nu = nu
        self.center = None
        self.radius = torch.tensor(0.0)

    @torch.no_grad()
    def set_center(self, data, eps=0.1):
        """The mean of the first outputs; coordinates near zero are moved away, as zero weights would reach them."""
        center = self.net(data).mean(0)
        center[(center.abs() < eps) & (center < 0)] = -eps
        center[(center.abs() < eps) & (center >= 0)] = eps
        self.center = center

    def distance(self, x):
        return (self.net(x) - self.center).pow(2).sum(-1)

    def loss(self, distance):
        excess = distance - self.radius**2
        return self.radius**2 + excess.clamp(min=0).mean() / self.nu

    def update_radius(self, distance):
        """The best radius for fixed weights is a quantile of the distances."""
        self.radius.data = torch.quantile(distance.detach().sqrt(), 1 - self.nu)

    def fit(self, data, generator):
        self.set_center(data)
        optimizer = torch.optim.Adam(self.net.parameters(), lr=2e-3, weight_decay=1e-6)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [EPOCHS * 3 // 4], gamma=0.1)
        for epoch in range(1, EPOCHS + 1):
            total = 0.0
            for rows in torch.randperm(len(data), generator=generator).split(BATCH):
                distance = self.distance(data[rows])
                loss = self.loss(distance)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if epoch > WARM_UP:
                    self.update_radius(distance)
                total += loss.item() * len(rows)
            schedule.step()
            if epoch % 4 == 0:
                print(f"epoch {epoch:3d}  loss {total / len(data):.4f}  radius {self.radius.item():.4f}")
        return self

    @torch.no_grad()
    def score(self, x):
        return self.distance(x) - self.radius**2


def area_under_roc(normal, faulty):
    return (faulty.unsqueeze(1) > normal).float().mean().item()


def main():
    torch.manual_seed(14)
    generator = torch.Generator().manual_seed(8)
    data = make_readings(2000, generator)
    svdd = DeepSVDD(Encoder(), NU).fit(data, generator)
    normal = svdd.score(make_readings(500, generator))
    faulty = svdd.score(make_readings(500, generator, faulty=True))
    print(f"outside the ball: normal {(normal > 0).float().mean():.3f}  faulty {(faulty > 0).float().mean():.3f}")
    print(f"area under ROC {area_under_roc(normal, faulty):.3f}")
    return svdd, area_under_roc(normal, faulty)


if __name__ == "__main__":
    svdd, roc = main()
