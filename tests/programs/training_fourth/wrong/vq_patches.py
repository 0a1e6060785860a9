"""A vector-quantised autoencoder for small patterns."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


def patches(n):
    t = torch.linspace(0, 1, 16)
    kind = torch.randint(0, 4, (n, 1))
    place = torch.randint(0, 4, (n, 1)) / 4 + 0.1
    bump = torch.exp(-((t - place) / 0.08) ** 2)
    ramp = (t > place).float()
    wave = torch.sin(12 * (t - place))
    saw = ((t - place) % 0.5) * 2
    shapes = torch.stack([bump, ramp, wave, saw], 1)
    return shapes[torch.arange(n), kind.squeeze(1)] + 0.05 * torch.randn(n, 16)


class Quantizer(nn.Module):
    def __init__(self, codes, dim, beta=0.25):
        super().__init__()
        self.codebook = nn.Parameter(0.5 * torch.randn(codes, dim))
        self.beta = beta

    def forward(self, z):
        index = torch.cdist(z, self.codebook).argmin(1)
        quantized = self.codebook[index]
        codebook_loss = F.mse_loss(quantized, z.detach())
        commitment = F.mse_loss(z, quantized.detach())
        return quantized, codebook_loss + self.beta * commitment, index


class VQAE(nn.Module):
    def __init__(self, dim=8, codes=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, dim))
        self.quantizer = Quantizer(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, 16))

    def forward(self, x):
        quantized, vq_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(quantized), vq_loss, index


def train(model, data, epochs=20):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for x in data[torch.randperm(len(data))].split(64):
            recon, vq_loss, index = model(x)
            loss = F.mse_loss(recon, x) + vq_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} loss {loss.item():.4f}")


model = VQAE()
data, test = patches(1280), patches(600)
train(model, data)
with torch.no_grad():
    recon, _, index = model(test)
error = F.mse_loss(recon, test).item()
print(f"reconstruction error {error:.4f} of variance {test.var().item():.4f}, codes in use {len(index.unique())}")
