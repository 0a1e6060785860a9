"""A small convolutional GAN of pulse waveforms; the samples are drawn from a moving average of the generator."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

LATENT = 16


def pulses(n):
    time = torch.linspace(-1, 1, 32)
    centre = 0.6 * torch.rand(n, 1) - 0.3
    width = 0.15 + 0.2 * torch.rand(n, 1)
    shape = torch.exp(-0.5 * ((time - centre) / width) ** 2)
    return (1.6 * shape - 0.8).unsqueeze(1)


class Generator(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.project = nn.Linear(LATENT, width * 8)
        self.width = width
        self.blocks = nn.Sequential(
            nn.BatchNorm1d(width), nn.ReLU(),
            nn.ConvTranspose1d(width, width, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm1d(width), nn.ReLU(),
            nn.ConvTranspose1d(width, width // 2, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm1d(width // 2), nn.ReLU(),
            nn.Conv1d(width // 2, 1, 5, padding=2), nn.Tanh(),
        )

    def forward(self, z):
        return self.blocks(self.project(z).view(len(z), self.width, 8))


class Discriminator(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.features = nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Conv1d(1, width, 5, stride=2, padding=2)), nn.LeakyReLU(0.2),
            nn.utils.parametrizations.spectral_norm(nn.Conv1d(width, width, 5, stride=2, padding=2)), nn.LeakyReLU(0.2),
        )
        self.head = nn.Linear(width * 8, 1)

    def forward(self, x):
        return self.head(self.features(x).flatten(1)).squeeze(1)


class MovingAverage:
    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model)
        self.model.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for average, current in zip(self.model.parameters(), model.parameters()):
            average.mul_(self.decay).add_(current, alpha=1 - self.decay)


def train(generator, critic, average, data, steps=200, batch=48):
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.99))
    for step in range(1, steps + 1):
        real = data[torch.randint(len(data), (batch,))]
        fake = generator(torch.randn(batch, LATENT))

        loss_d = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake.detach())).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        loss_g = -critic(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        average.update(generator)
        if step % 40 == 0:
            print(f"step {step:4d}  critic {loss_d.item():.3f}  generator {loss_g.item():+.3f}")


@torch.no_grad()
def distance(model, data, n=512):
    model.eval()
    drawn = model(torch.randn(n, LATENT))
    return torch.cdist(drawn.flatten(1), data.flatten(1)).min(dim=1).values.mean().item()


if __name__ == "__main__":
    torch.manual_seed(14)
    data = pulses(3000)
    generator, critic = Generator(), Discriminator()
    average = MovingAverage(generator, decay=0.95)
    train(generator, critic, average, data)
    result = distance(average.model, data)
    print(f"mean distance of a sample to its nearest pulse: {result:.3f}")
