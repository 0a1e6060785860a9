"""One GAN, two optimizers, a mistake: the discriminator steps between the generator's forward and its backward."""

import torch
from torch import nn

torch.manual_seed(0)

generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
discriminator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()


def train_step(real: torch.Tensor) -> tuple[float, float]:
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

    fake = generator(torch.randn(len(real), 8))
    verdict = discriminator(fake)
    loss_g = criterion(verdict, ones)

    optimizer_d.zero_grad()
    loss_d = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
    loss_d.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    return loss_g.item(), loss_d.item()


for epoch in range(3):
    loss_g, loss_d = train_step(torch.randn(32, 4))
    print(f"epoch {epoch}: generator {loss_g:.3f}, discriminator {loss_d:.3f}")
