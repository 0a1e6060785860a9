"""VQ-VAE on 12x12 stripe images: discrete codes on a 3x3 grid, reconstruction and code usage."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

CODES, DIM, BETA = 24, 8, 0.25


def make_stripes(n):
    """Sinusoidal gratings with random orientation, frequency and phase, plus a bright patch."""
    ys, xs = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    theta = torch.rand(n, 1, 1) * math.pi
    freq = 0.5 + torch.rand(n, 1, 1) * 0.6
    phase = torch.rand(n, 1, 1) * 2 * math.pi
    img = 0.5 + 0.4 * torch.sin(freq * (xs * theta.cos() + ys * theta.sin()) + phase)
    for k in range(n):
        r, c = torch.randint(0, 9, (2,)).tolist()
        img[k, r:r + 3, c:c + 3] = 1.0
    return img.unsqueeze(1)


class Quantizer(nn.Module):
    def __init__(self, codes, dim, beta):
        super().__init__()
        self.beta = beta
        self.embedding = nn.Embedding(codes, dim)
        nn.init.uniform_(self.embedding.weight, -1 / codes, 1 / codes)

    def forward(self, z):
        b, d, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, d)
        # nearest neighbour lookup, not differentiable
        with torch.no_grad():
            dist = (flat.pow(2).sum(1, keepdim=True)
                    - 2 * flat @ self.embedding.weight.t()
                    + self.embedding.weight.pow(2).sum(1))
            index = dist.argmin(dim=1)
            quantized = self.embedding(index).view(b, h, w, d).permute(0, 3, 1, 2)

        codebook_loss = F.mse_loss(quantized, z.detach())
        commitment_loss = F.mse_loss(z, quantized.detach())
        quantized = z + (quantized - z).detach()  # straight-through estimator
        return quantized, codebook_loss + self.beta * commitment_loss, index.view(b, -1)


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 24, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(24, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, DIM, 1),
        )
        self.quantizer = Quantizer(CODES, DIM, BETA)
        self.decoder = nn.Sequential(
            nn.Conv2d(DIM, 32, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(32, 24, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(24, 1, 4, stride=2, padding=1), nn.Sigmoid(),
        )

    def forward(self, x):
        z = self.encoder(x)
        q, vq_loss, index = self.quantizer(z)
        return self.decoder(q), vq_loss, index


def perplexity(index):
    freq = torch.bincount(index.flatten(), minlength=CODES).float()
    freq = freq / freq.sum()
    return torch.exp(-(freq * (freq + 1e-10).log()).sum()).item()


train_x, test_x = make_stripes(1024), make_stripes(256)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    total = 0.0
    for batch in train_x[torch.randperm(len(train_x))].split(64):
        recon, vq_loss, _ = model(batch)
        loss = F.mse_loss(recon, batch) / 0.08 + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            recon, _, index = model(test_x)
            test_mse = F.mse_loss(recon, test_x).item()
        print(f"epoch {epoch + 1:2d}  train {total / 16:.4f}  test mse {test_mse:.4f}  "
              f"perplexity {perplexity(index):.1f}")
