"""Vector-quantised autoencoder for small 'ring' images."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)

SIDE = 12
N_CODES = 32
CODE_DIM = 8
COMMIT = 2.0


def make_rings(n):
    ys, xs = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    cx, cy = 3 + 6 * torch.rand(n, 1, 1), 3 + 6 * torch.rand(n, 1, 1)
    radius = 1.5 + 3 * torch.rand(n, 1, 1)
    dist = ((xs - cx) ** 2 + (ys - cy) ** 2).sqrt()
    return torch.exp(-((dist - radius) ** 2)).unsqueeze(1)


class Quantizer(nn.Module):
    def __init__(self, n_codes, dim):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)
        nn.init.uniform_(self.codebook.weight, -0.5, 0.5)

    def forward(self, z):
        b, c, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, c)
        index = torch.cdist(flat, self.codebook.weight).argmin(1)
        quantized = self.codebook(index).view(b, h, w, c).permute(0, 3, 1, 2)
        # straight-through: the decoder sees codes, the encoder gets its gradient
        quantized = z + (quantized - z).detach()
        codebook_loss = F.mse_loss(quantized, z.detach())
        commit_loss = F.mse_loss(z, quantized.detach())
        return quantized, codebook_loss + COMMIT * commit_loss, index


class RingVQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
            nn.Conv2d(32, CODE_DIM, 2, stride=2),
        )
        self.quantizer = Quantizer(N_CODES, CODE_DIM)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(CODE_DIM, 32, 2, stride=2), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1), nn.Sigmoid(),
        )

    def forward(self, x):
        quantized, vq_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(quantized), vq_loss, index


@torch.no_grad()
def evaluate(model, images):
    model.eval()
    recon, _, index = model(images)
    usage = torch.bincount(index, minlength=N_CODES).float()
    probs = usage / usage.sum()
    perplexity = torch.exp(-(probs * (probs + 1e-9).log()).sum()).item()
    return F.mse_loss(recon, images).item(), perplexity


def main(steps=400, batch=64):
    train, test = make_rings(2000), make_rings(300)
    model = RingVQ()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for step in range(1, steps + 1):
        model.train()
        x = train[torch.randint(0, len(train), (batch,))]
        recon, vq_loss, _ = model(x)
        recon_loss = F.mse_loss(recon, x)
        loss = recon_loss * 10 + vq_loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            mse, ppl = evaluate(model, test)
            print(f"step {step:4d}  recon {recon_loss.item():.4f}  vq {vq_loss.item():.4f}  "
                  f"test mse {mse:.4f}  perplexity {ppl:.1f}")
    return model, evaluate(model, test)


if __name__ == "__main__":
    model, (test_mse, perplexity) = main()
    print(f"test mse {test_mse:.4f}  codes in use {perplexity:.1f} of {N_CODES}")
