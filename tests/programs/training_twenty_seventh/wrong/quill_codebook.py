"""VQ-VAE with an EMA codebook on small texture tiles; trained in two jobs with a checkpoint in between."""
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    codes: int = 32
    dim: int = 16
    decay: float = 0.98
    beta: float = 0.25
    batch: int = 32
    lr: float = 2e-3
    steps_per_job: int = 120


class Codebook(nn.Module):
    def __init__(self, codes, dim, decay, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        self.register_buffer("embed", 0.2 * torch.randn(codes, dim))
        self.cluster_size = torch.ones(codes)
        self.embed_avg = self.embed.clone()

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        index = torch.cdist(flat, self.embed).argmin(1)
        if self.training:
            self.update(flat.detach(), index)
        q = self.embed[index].view(z.shape[0], z.shape[2], z.shape[3], -1).permute(0, 3, 1, 2)
        commit = F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit, index

    @torch.no_grad()
    def update(self, flat, index):
        onehot = F.one_hot(index, len(self.embed)).type_as(flat)
        self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
        self.embed_avg.lerp_(onehot.t() @ flat, 1 - self.decay)
        n = self.cluster_size.sum()
        size = (self.cluster_size + self.eps) / (n + len(self.embed) * self.eps) * n
        self.embed.copy_(self.embed_avg / size[:, None])


class VQVAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, cfg.dim, 4, 2, 1))
        self.codebook = Codebook(cfg.codes, cfg.dim, cfg.decay)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(cfg.dim, 32, 4, 2, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(32, 1, 4, 2, 1))

    def forward(self, x):
        q, commit, index = self.codebook(self.encoder(x))
        return self.decoder(q), commit, index


def tiles(n, gen):
    """Oriented gratings with random frequency and phase."""
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    angle, freq, phase = torch.rand(3, n, 1, 1, generator=gen) * torch.tensor([3.14, 0.5, 6.28]).view(3, 1, 1, 1)
    return torch.sin((0.3 + freq) * (x * angle.cos() + y * angle.sin()) + phase).unsqueeze(1)


@torch.no_grad()
def validate(model, data):
    model.eval()
    recon, _, index = model(data)
    model.train()
    return F.mse_loss(recon, data).item(), index.unique().numel()


def job(cfg, data, held_out, path):
    """One slot on the cluster: picks up the last checkpoint if there is one."""
    model = VQVAE(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    start = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        start = state["step"]
        mse, used = validate(model, held_out)
        print(f"resumed at step {start}: val mse {mse:.4f}, {used} codes in use")
    history = []
    for step in range(start, start + cfg.steps_per_job):
        x = data[torch.randint(0, len(data), (cfg.batch,))]
        recon, commit, _ = model(x)
        loss = F.mse_loss(recon, x) + cfg.beta * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(loss.item())
        if (step + 1) % 40 == 0:
            print("step %d loss %.4f val mse %.4f codes %d" % (step + 1, loss.item(), *validate(model, held_out)))
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step + 1}, path)
    return model, history


if __name__ == "__main__":
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(4)
    data, held_out = tiles(1024, gen), tiles(128, gen)
    with tempfile.TemporaryDirectory() as folder:
        runs = [job(Config(), data, held_out, os.path.join(folder, "last.pt")) for _ in range(2)]
