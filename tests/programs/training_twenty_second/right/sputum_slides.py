"""Bacilli count regression on synthetic smear fields; the whole batch is augmented at once in the collate step."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SmearBank:
    """All fields in one tensor; a batch is drawn by an index tensor and augmented in place."""

    def __init__(self, images, counts):
        self.images, self.counts = images, counts

    def __len__(self):
        return len(self.counts)

    def batch(self, index, augment):
        fields = self.images[index]
        if augment:
            stain = 1 + 0.15 * torch.randn(len(index), 1, 1, 1)
            fields *= stain
            fields += 0.05 * torch.randn_like(fields)
            flip = torch.rand(len(index)) < 0.5
            fields[flip] = fields[flip].flip(-1)
        fields -= fields.mean(dim=(1, 2, 3), keepdim=True)
        return fields, self.counts[index]


def synth_fields(n, gen, size=16):
    grid = torch.arange(size, dtype=torch.float32)
    counts = torch.randint(0, 7, (n,), generator=gen)
    images = 0.05 * torch.randn(n, 1, size, size, generator=gen)
    for k in range(n):
        for _ in range(int(counts[k])):
            cy, cx = (torch.rand(2, generator=gen) * (size - 4) + 2).tolist()
            images[k, 0] += torch.exp(-((grid[:, None] - cy) / 0.8) ** 2 - ((grid[None] - cx) / 1.4) ** 2)
    return SmearBank(images, counts.float())


class CountNet(nn.Module):
    """Poisson rate as an integral over a density map."""

    def __init__(self, width=8):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
                                  nn.ReLU(), nn.Conv2d(width, 1, 1))

    def forward(self, x):
        density = F.softplus(self.conv(x) - 3.0)
        return density.sum(dim=(1, 2, 3)) + 1e-3


def train(epochs=8, batch_size=20):
    torch.manual_seed(8)
    gen = torch.Generator().manual_seed(8)
    bank, test_bank = synth_fields(160, gen), synth_fields(80, gen)
    model = CountNet()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        total = 0.0
        for index in torch.randperm(len(bank)).split(batch_size):
            x, y = bank.batch(index, augment=True)
            loss = F.poisson_nll_loss(model(x), y, log_input=False)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(index)
        with torch.no_grad():
            x, y = test_bank.batch(torch.arange(len(test_bank)), augment=False)
            mae = (model(x) - y).abs().mean().item()
        print(f"epoch {epoch + 1}: loss {total / len(bank):.3f}  test MAE {mae:.3f} bacilli")
    return model, bank, mae


if __name__ == "__main__":
    train()
