"""Vector-quantised autoencoder for small texture patches; the codebook follows the encoder by moving averages."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(13)

PATCH, CODES, CODE_DIM = 36, 24, 6
TRAIN, TEST, BATCH, EPOCHS = 1024, 256, 128, 10
COMMITMENT = 0.25


class EMAQuantizer(nn.Module):
    """Nearest code for each row; codes are running means of the rows assigned to them."""

    def __init__(self, codes, dim, decay=0.9, eps=1e-5, min_usage=0.3):
        super().__init__()
        self.decay, self.eps, self.min_usage = decay, eps, min_usage
        start = torch.randn(codes, dim)
        self.register_buffer("codebook", start)
        self.register_buffer("code_sum", start.clone())
        self.register_buffer("usage", torch.ones(codes))

    @torch.no_grad()
    def follow(self, rows, index):
        onehot = F.one_hot(index, len(self.codebook)).type_as(rows)
        self.usage.mul_(self.decay).add_(onehot.sum(dim=0), alpha=1 - self.decay)
        self.code_sum.mul_(self.decay).add_(onehot.t() @ rows, alpha=1 - self.decay)
        total = self.usage.sum()
        smoothed = (self.usage + self.eps) / (total + len(self.usage) * self.eps) * total
        self.codebook.copy_(self.code_sum / smoothed.unsqueeze(1))
        idle = (self.usage < self.min_usage).nonzero().squeeze(1)
        if len(idle):
            fresh = rows[torch.randint(0, len(rows), (len(idle),))]
            self.codebook[idle] = fresh
            self.code_sum[idle] = fresh
            self.usage[idle] = 1.0

    def forward(self, rows):
        with torch.no_grad():
            index = torch.cdist(rows, self.codebook).argmin(dim=1)
        quantized = F.embedding(index, self.codebook)
        commitment = F.mse_loss(rows, quantized.detach())
        if self.training:
            self.follow(rows.detach(), index)
        quantized = rows + (quantized - rows).detach()
        return quantized, commitment, index


class PatchAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PATCH, 48), nn.ReLU(), nn.Linear(48, CODE_DIM))
        self.quantizer = EMAQuantizer(CODES, CODE_DIM)
        self.decoder = nn.Sequential(nn.Linear(CODE_DIM, 48), nn.ReLU(), nn.Linear(48, PATCH))

    def forward(self, patches):
        quantized, commitment, index = self.quantizer(self.encoder(patches))
        return self.decoder(quantized), commitment, index


def make_patches(count):
    """Oriented stripes of a few orientations and phases, with noise."""
    side = int(PATCH ** 0.5)
    axis = torch.linspace(-1, 1, side)
    grid_y, grid_x = torch.meshgrid(axis, axis, indexing="ij")
    angle = torch.randint(0, 4, (count, 1, 1)) * (torch.pi / 4)
    phase = torch.randint(0, 4, (count, 1, 1)) * (torch.pi / 2)
    stripes = torch.sin(4 * (grid_x * angle.cos() + grid_y * angle.sin()) + phase)
    return (stripes + 0.1 * torch.randn(count, side, side)).flatten(1)


@torch.no_grad()
def evaluate(model, patches):
    model.eval()
    output, _, index = model(patches)
    model.train()
    return F.mse_loss(output, patches).item(), len(index.unique())


train_set, test_set = make_patches(TRAIN), make_patches(TEST)
model = PatchAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    total = 0.0
    for rows in torch.randperm(TRAIN).split(BATCH):
        patches = train_set[rows]
        output, commitment, _ = model(patches)
        loss = F.mse_loss(output, patches) + COMMITMENT * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if (epoch + 1) % 2 == 0:
        error, used = evaluate(model, test_set)
        print(f"epoch {epoch + 1:2d}  loss {total / TRAIN:.4f}  test mse {error:.4f}  codes in use {used}")
