"""Metric learning for retrieval: softmax with center loss (Wen et al.) and batch-hard triplets on the normalized features."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(15)
SIZE, CLASSES, UNSEEN, DIM = 14, 8, 4, 12


def make_prototypes(n):
    coarse = torch.randn(n, 1, 5, 5)
    return F.interpolate(coarse, size=(SIZE, SIZE), mode="bilinear", align_corners=True).squeeze(1)


PROTOTYPES = make_prototypes(CLASSES + UNSEEN)


def sample(labels):
    """Shifted, scaled and noisy instances of the prototypes."""
    images = PROTOTYPES[labels]
    shift = torch.randint(-2, 3, (len(labels), 2)).tolist()
    images = torch.stack([torch.roll(im, tuple(s), dims=(0, 1)) for im, s in zip(images, shift)])
    gain = 0.5 + torch.rand(len(labels), 1, 1)
    return (images * gain + 0.6 * torch.randn_like(images))[:, None]


def balanced_batch(per_class=4, classes=6):
    chosen = torch.randperm(CLASSES)[:classes]
    labels = chosen.repeat_interleave(per_class)
    return sample(labels), labels


class EmbeddingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(3),
            nn.Flatten(), nn.Linear(24 * 9, DIM))
        self.classify = nn.Linear(DIM, CLASSES)

    def forward(self, x):
        features = self.trunk(x)
        return features, self.classify(features)


class CenterLoss(nn.Module):
    """The centers follow the features by the rule of the paper, not by a gradient."""

    def __init__(self, rate=0.5):
        super().__init__()
        self.rate = rate
        self.register_buffer("centers", torch.zeros(CLASSES, DIM))

    def forward(self, features, labels):
        return 0.5 * (features - self.centers[labels]).square().sum(1).mean()

    @torch.no_grad()
    def update(self, features, labels):
        difference = self.centers[labels] - features
        total = torch.zeros_like(self.centers).index_add_(0, labels, difference)
        count = torch.bincount(labels, minlength=CLASSES)[:, None]
        self.centers.sub_(self.rate * total / (1 + count))


def batch_hard_triplet(features, labels, margin=0.3):
    points = F.normalize(features, dim=1)
    same = labels[:, None] == labels[None]
    with torch.no_grad():
        distance = torch.cdist(points, points)
        farthest = distance.masked_fill(~same, -1.0).argmax(1)
        nearest = distance.masked_fill(same, float("inf")).argmin(1)
    to_positive = (points - points[farthest]).square().sum(1).clamp(min=1e-8).sqrt()
    to_negative = (points - points[nearest]).square().sum(1).clamp(min=1e-8).sqrt()
    return F.relu(to_positive - to_negative + margin).mean()


@torch.no_grad()
def recall_at_one(model, images, labels):
    points = F.normalize(model(images)[0], dim=1)
    similarity = points @ points.t()
    similarity.fill_diagonal_(-2.0)
    return (labels[similarity.argmax(1)] == labels).float().mean().item()


def main(steps=150, center_weight=0.01):
    model, center_loss = EmbeddingNet(), CenterLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    unseen = torch.arange(CLASSES, CLASSES + UNSEEN).repeat(40)
    check = (sample(unseen), unseen)
    print(f"recall on unseen classes before training {recall_at_one(model, *check):.3f}")
    for step in range(steps):
        images, labels = balanced_batch()
        features, logits = model(images)
        softmax = F.cross_entropy(logits, labels)
        center = center_loss(features, labels)
        triplet = batch_hard_triplet(features, labels)
        loss = softmax + center_weight * center + triplet
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        center_loss.update(features, labels)
        if step % 30 == 29:
            print(f"step {step + 1:3d}  softmax {softmax.item():.3f}  center {center.item():.3f}  "
                  f"triplet {triplet.item():.3f}  recall {recall_at_one(model, *check):.3f}")
    return model, center_loss, optimizer, check


if __name__ == "__main__":
    model, center_loss, optimizer, check = main()
