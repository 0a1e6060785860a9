"""Instance discrimination with a memory bank (non-parametric softmax) on synthetic image patches."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MemoryBank(nn.Module):
    def __init__(self, size, dim, temperature=0.1, momentum=0.5):
        super().__init__()
        self.temperature = temperature
        self.momentum = momentum
        self.register_buffer("bank", F.normalize(torch.randn(size, dim), dim=1))

    def negatives(self, idx, k):
        draw = torch.randint(0, self.bank.size(0), (idx.size(0), k))
        return self.bank[draw]

    def forward(self, feats, idx, k=64):
        positive = self.bank[idx]
        negative = self.negatives(idx, k)
        pos_logit = (feats * positive).sum(dim=1, keepdim=True)
        neg_logit = torch.bmm(negative, feats.unsqueeze(2)).squeeze(2)
        logits = torch.cat([pos_logit, neg_logit], dim=1) / self.temperature
        target = torch.zeros(feats.size(0), dtype=torch.long)
        return F.cross_entropy(logits, target)

    @torch.no_grad()
    def update(self, feats, idx):
        entries = self.bank[idx]
        entries.mul_(self.momentum).add_(feats, alpha=1 - self.momentum)
        entries.div_(entries.norm(dim=1, keepdim=True))


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.proj = nn.Linear(64, dim)

    def forward(self, x):
        return F.normalize(self.proj(self.conv(x)), dim=1)


def make_images(n, classes=4, size=12):
    base = torch.randn(classes, 1, size, size)
    labels = torch.arange(n) % classes
    return base[labels] + 0.7 * torch.randn(n, 1, size, size), labels


def augment(x):
    shift = int(torch.randint(-1, 2, (1,)))
    return torch.roll(x, shift, dims=3) + 0.1 * torch.randn_like(x)


@torch.no_grad()
def knn_accuracy(encoder, images, labels, k=5):
    encoder.eval()
    z = encoder(images)
    sim = z @ z.t()
    sim.fill_diagonal_(-2)
    votes = labels[sim.topk(k, dim=1).indices]
    return (votes.mode(dim=1).values == labels).float().mean().item()


torch.manual_seed(5)
images, labels = make_images(256)
encoder = Encoder()
memory = MemoryBank(images.size(0), 16)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)

initial_bank = memory.bank.clone()
for epoch in range(12):
    encoder.train()
    total = 0.0
    for idx in torch.randperm(images.size(0)).split(32):
        feats = encoder(augment(images[idx]))
        loss = memory(feats, idx)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        memory.update(feats.detach(), idx)
        total += loss.item() * idx.numel()
    if epoch % 4 == 3:
        acc = knn_accuracy(encoder, images, labels)
        print(f"epoch {epoch} loss {total / images.size(0):.3f} knn {acc:.3f}")
