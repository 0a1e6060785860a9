"""A GAN in the usual order: the generator's loss fills the discriminator's gradients too, which its own step clears."""

import torch
from torch import nn

torch.manual_seed(2)
generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
discriminator = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.ones(16, 1), torch.zeros(16, 1)

for step in range(3):
    real = torch.randn(16, 2) + 2.0

    discriminator.zero_grad()
    error_real = criterion(discriminator(real), real_label)
    error_real.backward()
    fake = generator(torch.randn(16, 4))
    error_fake = criterion(discriminator(fake.detach()), fake_label)
    error_fake.backward()
    optimizer_d.step()

    generator.zero_grad()
    error_g = criterion(discriminator(fake), real_label)
    error_g.backward()
    optimizer_g.step()
    print(step, round(error_real.item() + error_fake.item(), 3), round(error_g.item(), 3))
