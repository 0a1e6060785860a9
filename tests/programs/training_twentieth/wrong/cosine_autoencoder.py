"""Convolutional denoising autoencoder for small bump images, with warmup and cosine decay."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)

SIDE = 16
EPOCHS = 8
BATCH = 40
BASE_LR = 2.5e-3
WARMUP = 0.1


def make_images(n):
    """Two or three Gaussian bumps per image."""
    grid = torch.linspace(0, 1, SIDE)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    images = torch.zeros(n, SIDE, SIDE)
    for _ in range(3):
        cy, cx = torch.rand(n, 1, 1), torch.rand(n, 1, 1)
        width = 0.05 + 0.1 * torch.rand(n, 1, 1)
        images += torch.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * width ** 2))
    return images.clamp(max=1).unsqueeze(1)


class Autoencoder(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def corrupt(x):
    return x + 0.3 * torch.randn_like(x)


images = make_images(1400)
train_loader = DataLoader(TensorDataset(images[:1200]), batch_size=BATCH, shuffle=True)
clean = images[1200:]
noisy = corrupt(clean)

model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=BASE_LR)
total_steps = EPOCHS * len(train_loader)
warmup_steps = int(WARMUP * total_steps)


def warmup_cosine(step):
    """Linear warmup, then cosine decay to zero at the last step."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * progress))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_cosine)

for epoch in range(EPOCHS):
    model.train()
    epoch_loss = 0.0
    for (batch,) in train_loader:
        loss = F.mse_loss(model(corrupt(batch)), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(batch)
    scheduler.step()
    epoch_loss /= len(train_loader.dataset)
    print(f"epoch {epoch + 1}: loss {epoch_loss:.5f}")

model.eval()
with torch.no_grad():
    test_error = F.mse_loss(model(noisy), clean).item()
print(f"denoising error {test_error:.5f} (noisy input: {F.mse_loss(noisy, clean).item():.5f})")
