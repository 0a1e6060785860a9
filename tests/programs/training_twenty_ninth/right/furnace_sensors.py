"""Soft-boundary Deep SVDD on windows of furnace sensors: an autoencoder gives the start, a ball around normal data the score."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SENSORS = 4
WINDOW = 12
CODE = 8
NU = 0.1
WARM_UP = 4


def make_windows(count, generator, broken=False):
    """One heating cycle per window, seen by four sensors; in a broken furnace one sensor is out of step.

    Windows are scaled to the same energy."""
    time = torch.arange(WINDOW) / WINDOW * 6.28
    shift = 0.3 * torch.randn(count, 1, 1, generator=generator)
    lag = (torch.arange(SENSORS)[:, None] * 0.6).repeat(count, 1, 1)
    if broken:
        which = torch.randint(SENSORS, (count,), generator=generator)
        lag[torch.arange(count), which] -= 1.2
    windows = (1 + torch.sin(time + shift + lag)) * (1 + 0.2 * torch.rand(count, 1, 1, generator=generator))
    windows = windows + 0.05 * torch.randn(windows.shape, generator=generator)
    return F.normalize(windows.flatten(1), dim=-1) * (SENSORS * WINDOW) ** 0.5


def make_encoder():
    return nn.Sequential(
        nn.Linear(SENSORS * WINDOW, 32, bias=False), nn.LeakyReLU(0.1),
        nn.Linear(32, CODE, bias=False),
    )


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = make_encoder()
        self.decoder = nn.Sequential(nn.Linear(CODE, 32), nn.LeakyReLU(0.1), nn.Linear(32, SENSORS * WINDOW))

    def forward(self, windows):
        return self.decoder(self.encoder(windows))


class DeepSVDD(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = make_encoder()
        self.register_buffer("centre", torch.zeros(CODE))
        self.register_buffer("radius", torch.tensor(0.0))

    @torch.no_grad()
    def place_centre(self, windows, margin=0.1):
        centre = self.encoder(windows).mean(0)
        sign = torch.where(centre < 0, -1.0, 1.0)
        self.centre.copy_(torch.where(centre.abs() < margin, margin * sign, centre))

    @torch.no_grad()
    def fit_radius(self, distances):
        self.radius.copy_(torch.quantile(distances, 1 - NU).sqrt())

    def forward(self, windows):
        return (self.encoder(windows) - self.centre).pow(2).sum(-1)


def pretrain(windows, epochs=6):
    net = Autoencoder()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for part in torch.randperm(len(windows)).split(64):
            loss = F.mse_loss(net(windows[part]), windows[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"autoencoder loss {loss.item():.4f}")
    return net


def train(svdd, windows, epochs=14):
    optimizer = torch.optim.Adam(svdd.parameters(), lr=1e-3, weight_decay=1e-6)
    for epoch in range(epochs):
        distances = []
        for part in torch.randperm(len(windows)).split(64):
            distance = svdd(windows[part])
            loss = svdd.radius ** 2 + F.relu(distance - svdd.radius ** 2).mean() / NU
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            distances.append(distance.data)
        if epoch >= WARM_UP:
            svdd.fit_radius(torch.cat(distances))
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}  radius {svdd.radius.item():.4f}")


@torch.no_grad()
def auc(svdd, normal, broken):
    return (svdd(broken)[:, None] > svdd(normal)[None]).float().mean().item()


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(12)
    windows = make_windows(512, generator)
    normal, broken = make_windows(300, generator), make_windows(300, generator, broken=True)
    autoencoder = pretrain(windows)
    svdd = DeepSVDD()
    svdd.encoder.load_state_dict(autoencoder.encoder.state_dict())
    svdd.place_centre(windows)
    print(f"AUC at the start {auc(svdd, normal, broken):.3f}")
    train(svdd, windows)
    print(f"AUC at the end   {auc(svdd, normal, broken):.3f}")
    return svdd, autoencoder, windows


if __name__ == "__main__":
    svdd, autoencoder, windows = main()
