import torch
import torch.nn as nn
import torch.nn.functional as F


class EMAQuantizer(nn.Module):
    def __init__(self, n_codes=16, dim=4, decay=0.8, tau=0.5):
        super().__init__()
        self.decay, self.tau = decay, tau
        self.register_buffer("codebook", torch.randn(n_codes, dim))
        self.register_buffer("counts", torch.ones(n_codes))

    def distances(self, z, codes):
        return z.pow(2).sum(1, keepdim=True) - 2 * z @ codes.t() + codes.pow(2).sum(1)

    def update_codes(self, z, idx):
        onehot = F.one_hot(idx, self.codebook.shape[0]).to(z.dtype)
        n = onehot.sum(0)
        self.counts.mul_(self.decay).add_(n, alpha=1 - self.decay)
        mean = onehot.t() @ z / n.clamp(min=1).unsqueeze(1)
        mean = torch.where(n.unsqueeze(1) > 0, mean, self.codebook)
        self.codebook.data.mul_(self.decay).add_(mean, alpha=1 - self.decay)

    def entropy_loss(self, dist):
        p = F.softmax(-dist / self.tau, dim=1)
        per_sample = -(p * (p + 1e-8).log()).sum(1).mean()
        avg = p.mean(0)
        return per_sample + (avg * (avg + 1e-8).log()).sum()

    def forward(self, z):
        dist = self.distances(z, self.codebook.clone())
        idx = dist.argmin(dim=1)
        q = self.codebook[idx]
        if self.training:
            self.update_codes(z.detach(), idx)
        commit = F.mse_loss(z, q)
        return z + (q - z).detach(), commit, self.entropy_loss(dist), idx


class VQVAE(nn.Module):
    def __init__(self, n_in=12, dim=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim))
        self.vq = EMAQuantizer(dim=dim)
        self.dec = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, n_in))

    def forward(self, x):
        q, commit, ent, idx = self.vq(self.enc(x))
        return self.dec(q), commit, ent, idx


def main():
    torch.manual_seed(8)
    centers = torch.randn(6, 12)
    model = VQVAE()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(40):
        x = centers[torch.randint(0, 6, (64,))] + 0.1 * torch.randn(64, 12)
        recon, commit, ent, idx = model(x)
        rec = F.mse_loss(recon, x)
        loss = rec + 0.25 * commit + 0.1 * ent
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 8 == 0:
            print(f"step {step:2d} rec {rec.item():.4f} commit {commit.item():.4f} codes {idx.unique().numel()}")


if __name__ == "__main__":
    main()
