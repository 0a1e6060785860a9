"""Discrete item tokens for a generative recommender: an autoencoder with product-quantised codes over item features."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ITEMS, FEATURES, GROUPS, CODES, WIDTH = 600, 40, 4, 16, 4


def make_catalogue(generator):
    """Items are made of a brand, a category, a price band and a style, each with its own direction."""
    parts = []
    for _ in range(4):
        table = torch.randn(8, FEATURES, generator=generator)
        parts.append(table[torch.randint(0, 8, (ITEMS,), generator=generator)])
    x = sum(parts) + 0.2 * torch.randn(ITEMS, FEATURES, generator=generator)
    return (x - x.mean(0)) / x.std(0)


class GroupQuantizer(nn.Module):
    """Each group of latent dimensions is replaced by its nearest entry of the group's codebook."""

    def __init__(self, groups, codes, width, commitment=0.25):
        super().__init__()
        self.groups, self.width = groups, width
        self.commitment = commitment
        self.codebook = nn.Parameter(torch.empty(groups, codes, width).uniform_(-1.0, 1.0))

    def lookup(self, z):
        distance = torch.cdist(z.detach().transpose(0, 1), self.codebook.detach())  # groups x batch x codes
        return distance.argmin(dim=-1).T

    def forward(self, flat):
        z = flat.view(-1, self.groups, self.width)
        tokens = self.lookup(z)
        picked = self.codebook[torch.arange(self.groups), tokens]
        picked = z + (picked - z).detach()
        codebook_loss = F.mse_loss(picked, z.detach())
        commitment_loss = F.mse_loss(z, picked.detach())
        loss = codebook_loss + self.commitment * commitment_loss
        return picked.flatten(1), tokens, loss


class ItemTokenizer(nn.Module):
    def __init__(self):
        super().__init__()
        latent = GROUPS * WIDTH
        self.encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, latent), nn.Tanh())
        self.quantizer = GroupQuantizer(GROUPS, CODES, WIDTH)
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, FEATURES))

    def forward(self, x):
        quantized, tokens, vq_loss = self.quantizer(self.encoder(x))
        return self.decoder(quantized), tokens, vq_loss


@torch.no_grad()
def token_report(model, x):
    model.eval()
    recon, tokens, _ = model(x)
    distinct = torch.unique(tokens, dim=0).shape[0]
    used = [torch.unique(tokens[:, g]).numel() for g in range(GROUPS)]
    z = model.encoder(x).view(-1, GROUPS, WIDTH)
    picked = model.quantizer.codebook[torch.arange(GROUPS), tokens]
    model.train()
    return F.mse_loss(recon, x).item(), (z - picked).pow(2).mean().item(), distinct, used


def fit(model, x, epochs=60, batch=100):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        recon_sum = vq_sum = 0.0
        for start in range(0, len(x), batch):
            rows = x[order[start : start + batch]]
            recon, _, vq_loss = model(rows)
            recon_loss = F.mse_loss(recon, rows)
            loss = recon_loss + vq_loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            recon_sum += recon_loss.item() * len(rows)
            vq_sum += vq_loss.item() * len(rows)
        if epoch % 15 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch:2d}  reconstruction {recon_sum / len(x):.4f}  quantiser {vq_sum / len(x):.4f}")


if __name__ == "__main__":
    torch.manual_seed(5)
    catalogue = make_catalogue(torch.Generator().manual_seed(8))
    model = ItemTokenizer()
    fit(model, catalogue)
    error, gap, distinct, used = token_report(model, catalogue)
    print(f"reconstruction {error:.4f}  latent gap {gap:.4f}  distinct tuples {distinct}/{ITEMS}  used {used}")
