"""Retrieval of leaf species: an embedding is trained with batch-hard triplets on measured shape descriptors."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SPECIES = 12
SHAPE = 6
NUISANCE = 18


def make_leaves(per_species, prototypes, rotation):
    """Descriptors mix a species-specific part with strong variation from age and light."""
    labels = torch.arange(SPECIES).repeat_interleave(per_species)
    shape = prototypes[labels] + 0.35 * torch.randn(len(labels), SHAPE)
    nuisance = 2.5 * torch.randn(len(labels), NUISANCE)
    return torch.cat([shape, nuisance], dim=1) @ rotation, labels


class LeafEncoder(nn.Module):
    def __init__(self, width=64, out=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(SHAPE + NUISANCE, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, out),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class SpeciesSampler:
    """Batches of P species with K leaves each."""

    def __init__(self, labels, species_per_batch, leaves_per_species):
        self.rows = [torch.nonzero(labels == c).flatten() for c in range(SPECIES)]
        self.p = species_per_batch
        self.k = leaves_per_species

    def draw(self):
        chosen = torch.randperm(SPECIES)[: self.p].tolist()
        return torch.cat([self.rows[c][torch.randperm(len(self.rows[c]))[: self.k]] for c in chosen])


def pairwise_distance(z):
    difference = z.unsqueeze(1) - z.unsqueeze(0)
    return difference.pow(2).sum(dim=2).sqrt()


def batch_hard_loss(z, labels, margin=0.3):
    distance = pairwise_distance(z)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    hardest_positive = distance.masked_fill(~same, 0.0).amax(dim=1)
    hardest_negative = distance.masked_fill(same, 10.0).amin(dim=1)
    return F.softplus((hardest_positive - hardest_negative + margin) * 4.0).mean() / 4.0


@torch.no_grad()
def recall_at_one(model, x, labels):
    model.eval()
    z = model(x)
    similarity = z @ z.t()
    similarity.fill_diagonal_(-2.0)
    nearest = similarity.argmax(dim=1)
    model.train()
    return (labels[nearest] == labels).float().mean().item()


def train(model, x, labels, steps, lr=2e-3, max_norm=5.0):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    sampler = SpeciesSampler(labels, species_per_batch=8, leaves_per_species=4)
    history = []
    for step in range(1, steps + 1):
        rows = sampler.draw()
        loss = batch_hard_loss(model(x[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if torch.isfinite(norm):
            optimizer.step()
        history.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:4d}  triplet loss {sum(history[-50:]) / 50:.4f}")
    return history


def main():
    torch.manual_seed(5)
    prototypes = 1.5 * torch.randn(SPECIES, SHAPE)
    rotation = torch.linalg.qr(torch.randn(SHAPE + NUISANCE, SHAPE + NUISANCE)).Q
    x_train, y_train = make_leaves(40, prototypes, rotation)
    x_test, y_test = make_leaves(15, prototypes, rotation)

    model = LeafEncoder()
    print(f"recall@1 at start: {recall_at_one(model, x_test, y_test):.3f}")
    history = train(model, x_train, y_train, steps=200)
    recall = recall_at_one(model, x_test, y_test)
    print(f"recall@1 at end: {recall:.3f}  last loss {history[-1]:.4f}")


if __name__ == "__main__":
    main()
