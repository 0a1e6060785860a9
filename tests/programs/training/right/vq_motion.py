"""Vector-quantised autoencoder for short motion windows."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, n_codes, dim, commitment=0.25):
        super().__init__()
        self.codes = nn.Parameter(0.3 * torch.randn(n_codes, dim))
        self.commitment = commitment

    def forward(self, z):
        with torch.no_grad():
            index = torch.cdist(z, self.codes).argmin(dim=1)
        chosen = self.codes[index]
        loss = F.mse_loss(chosen, z.detach()) + self.commitment * F.mse_loss(z, chosen.detach())
        return z + (chosen - z).detach(), loss, index


class VQAutoencoder(nn.Module):
    def __init__(self, dim=24, latent=6, n_codes=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 48), nn.Tanh(), nn.Linear(48, latent))
        self.quantizer = Quantizer(n_codes, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 48), nn.Tanh(), nn.Linear(48, dim))

    def forward(self, x):
        z, vq_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(z), vq_loss, index


def motions(n, dim=24):
    t = torch.linspace(0, 1, dim)
    kind = torch.randint(6, (n, 1))
    freq = 1.0 + (kind % 3).float()
    sign = 1.0 - 2.0 * (kind // 3).float()
    return sign * torch.sin(2 * torch.pi * freq * t) + 0.05 * torch.randn(n, dim)


def main():
    torch.manual_seed(0)
    data = motions(512)
    model = VQAutoencoder()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(15):
        rec_sum = 0.0
        used = set()
        for batch in data[torch.randperm(len(data))].split(64):
            recon, vq_loss, index = model(batch)
            rec = F.mse_loss(recon, batch)
            opt.zero_grad()
            (rec + vq_loss).backward()
            opt.step()
            rec_sum += rec.item()
            used.update(index.tolist())
        if epoch % 5 == 4:
            print(f"epoch {epoch}: rec {rec_sum / 8:.4f} codes used {len(used)}")


if __name__ == "__main__":
    main()
