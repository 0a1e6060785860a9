"""Embed measurements of sea shells so that shells of one species lie close together (batch-hard triplets)."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(17)

SPECIES = 8
TRAITS = 4
FEATURES = 20
PER_SPECIES = 40
STEPS = 150
MARGIN = 0.5
MAX_NORM = 5.0


class ShellData:
    """Measurements mix a few traits of the species with growth that differs from shell to shell."""

    def __init__(self):
        self.centers = torch.randn(SPECIES, TRAITS)
        self.trait_map = torch.randn(TRAITS, FEATURES)
        self.growth_map = torch.randn(6, FEATURES)

    def shells(self, labels):
        traits = self.centers[labels] + 0.25 * torch.randn(len(labels), TRAITS)
        growth = 1.5 * torch.randn(len(labels), 6)
        return traits @ self.trait_map + growth @ self.growth_map

    def batch(self, species=6, each=5):
        chosen = torch.randperm(SPECIES)[:species]
        labels = chosen.repeat_interleave(each)
        return self.shells(labels), labels


class ShellEncoder(nn.Module):
    def __init__(self, width=48, size=8):
        super().__init__()
        self.scale = nn.LayerNorm(FEATURES)
        self.hidden = nn.Linear(FEATURES, width)
        self.out = nn.Linear(width, size)

    def forward(self, measurements):
        hidden = F.gelu(self.hidden(self.scale(measurements)))
        return F.normalize(self.out(hidden), dim=1)


def distances(points):
    difference = points.unsqueeze(1) - points.unsqueeze(0)
    return difference.pow(2).sum(-1).sqrt()


def batch_hard_loss(points, labels, margin=MARGIN):
    """For each shell: the farthest of its species against the nearest of any other."""
    table = distances(points)
    same = labels.unsqueeze(1) == labels.unsqueeze(0)
    farthest = table.masked_fill(~same, 0.0).max(dim=1).values
    nearest = table.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(farthest - nearest + margin).mean()


@torch.no_grad()
def recall_at_one(encoder, measurements, labels):
    encoder.eval()
    table = distances(encoder(measurements))
    table.fill_diagonal_(float("inf"))
    hit = labels[table.argmin(dim=1)] == labels
    encoder.train()
    return hit.float().mean().item()


def train_step(encoder, optimizer, measurements, labels):
    loss = batch_hard_loss(encoder(measurements), labels)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(encoder.parameters(), MAX_NORM)
    if torch.isfinite(norm):
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    data = ShellData()
    held_out = torch.arange(SPECIES).repeat_interleave(PER_SPECIES)
    test_shells = data.shells(held_out)
    encoder = ShellEncoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3, weight_decay=1e-4)
    print(f"recall@1 at the start: {recall_at_one(encoder, test_shells, held_out):.3f}")
    losses = []
    for step in range(STEPS):
        measurements, labels = data.batch()
        losses.append(train_step(encoder, optimizer, measurements, labels))
        if (step + 1) % 30 == 0:
            print(f"step {step + 1:4d}  loss {sum(losses[-30:]) / 30:.4f}")
    print(f"recall@1 at the end:   {recall_at_one(encoder, test_shells, held_out):.3f}")
