import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)


class Encoder(nn.Module):
    def __init__(self, in_dim, hidden, latent):
        super().__init__()
        self.hidden = nn.Linear(in_dim, hidden)
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)

    def forward(self, x):
        h = F.relu(self.hidden(x))
        return self.mu(h), self.logvar(h)


class VAE(nn.Module):
    def __init__(self, in_dim=144, hidden=64, latent=6):
        super().__init__()
        self.encoder = Encoder(in_dim, hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, in_dim), nn.Sigmoid()
        )

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        mu, logvar = self.encoder(x)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


def vae_loss(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x, reduction="sum") / x.size(0)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return bce + kld, bce, kld


def make_images(n, size=12):
    images = torch.zeros(n, size, size)
    for i in range(n):
        r, c = torch.randint(0, size - 4, (2,)).tolist()
        images[i, r:r + 4, :] = 1.0 if i % 2 else 0.0
        images[i, :, c:c + 3] = 1.0
    return images.flatten(1)


data = make_images(512)
loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(1, 31):
    total = 0.0
    for batch in loader:
        recon, mu, logvar = model(batch)
        loss, bce, kld = vae_loss(recon, batch, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 6 == 0:
        print(f"epoch {epoch:2d}  loss {total / len(loader):.4f}  recon {bce.item():.4f}  kl {kld.item():.4f}")

with torch.no_grad():
    recon, mu, _ = model(data)
    print(f"reconstruction mse {F.mse_loss(recon, data):.4f}  spread of mu {mu.std(0).mean():.4f}")
