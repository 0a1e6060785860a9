"""Adds new products to a recommender: the vectors of the established catalogue are given, those of new items are learned.

The vectors of established items are the ones that the retrieval index already serves, so their rows keep their values."""
import torch
import torch.nn as nn
import torch.nn.functional as F

USERS = 200
ESTABLISHED = 120
NEW = 40
DIM = 16
STEPS = 200


def make_world(generator):
    """Latent tastes, the delivered item vectors, and a matrix of affinities."""
    users = torch.randn(USERS, DIM, generator=generator)
    items = torch.randn(ESTABLISHED + NEW, DIM, generator=generator)
    affinity = users @ items.T / DIM ** 0.5
    clicks = (affinity + 0.5 * torch.randn(affinity.shape, generator=generator)) > 1.0
    return items[:ESTABLISHED].clone(), clicks.float()


class ClickModel(nn.Module):
    def __init__(self, delivered):
        super().__init__()
        self.item_vectors = nn.Embedding(ESTABLISHED + NEW, DIM)
        self.user_vectors = nn.Embedding(USERS, DIM)
        self.item_bias = nn.Embedding(ESTABLISHED + NEW, 1)
        nn.init.normal_(self.item_vectors.weight, std=0.1)
        nn.init.normal_(self.user_vectors.weight, std=0.1)
        nn.init.zeros_(self.item_bias.weight)
        with torch.no_grad():
            self.item_vectors.weight[:ESTABLISHED] = delivered
        learned = torch.zeros(ESTABLISHED + NEW, 1)
        learned[ESTABLISHED:] = 1.0
        self.register_buffer("learned", learned)
        self.item_vectors.weight.register_hook(self.only_new)

    def only_new(self, grad):
        return grad * self.learned

    def forward(self, users, items):
        match = (self.user_vectors(users) * self.item_vectors(items)).sum(-1)
        return match + self.item_bias(items).squeeze(-1)


def draw_batch(clicks, size, generator):
    users = torch.randint(USERS, (size,), generator=generator)
    items = torch.randint(ESTABLISHED + NEW, (size,), generator=generator)
    return users, items, clicks[users, items]


@torch.no_grad()
def pairwise_auc(model, clicks, first, last):
    """Share of (clicked, not clicked) pairs of one user that are in the right order."""
    model.eval()
    users = torch.arange(USERS)
    items = torch.arange(first, last)
    scores = model(users[:, None].expand(-1, len(items)), items[None].expand(USERS, -1))
    hit = clicks[:, first:last].bool()
    right = total = 0
    for row, mask in zip(scores, hit):
        difference = row[mask][:, None] - row[~mask][None]
        right += (difference > 0).sum().item()
        total += difference.numel()
    model.train()
    return right / total


def train(model, clicks, generator):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.03, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=0.002)
    for step in range(STEPS):
        users, items, target = draw_batch(clicks, 512, generator)
        loss = F.binary_cross_entropy_with_logits(model(users, items), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            print(f"step {step + 1:4d}  log loss {loss.item():.4f}")
    return optimizer


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(17)
    delivered, clicks = make_world(generator)
    model = ClickModel(delivered)
    optimizer = train(model, clicks, generator)
    print(f"pair accuracy, established items {pairwise_auc(model, clicks, 0, ESTABLISHED):.3f}")
    print(f"pair accuracy, new items         {pairwise_auc(model, clicks, ESTABLISHED, ESTABLISHED + NEW):.3f}")
    return model, optimizer, delivered


if __name__ == "__main__":
    model, optimizer, delivered = main()
