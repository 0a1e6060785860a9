"""Segment bright lesions in noisy toy scans with a small network with dropout and batch norm."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
SIZE = 20


def scans(n):
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    cx, cy = torch.randint(4, SIZE - 4, (2, n, 1, 1))
    radius = 2 + 2 * torch.rand(n, 1, 1)
    mask = ((xs - cx) ** 2 + (ys - cy) ** 2 < radius ** 2).float()
    image = mask + 0.9 * torch.randn(n, SIZE, SIZE)
    return image[:, None], mask[:, None]


class SegNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout2d(0.2),
            nn.Conv2d(width, width, 5, padding=2), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout2d(0.2),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.net(x)


def dice(logits, mask):
    predicted = (logits > 0).float()
    overlap = 2 * (predicted * mask).sum((1, 2, 3))
    return (overlap / (predicted.sum((1, 2, 3)) + mask.sum((1, 2, 3)))).mean().item()


class Segmenter:
    def __init__(self, epochs=7, batch=10, lr=1e-2):
        self.epochs, self.batch = epochs, batch
        self.model = SegNet()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.log = []

    def train_batch(self, image, mask):
        logits = self.model(image)
        loss = F.binary_cross_entropy_with_logits(logits, mask)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, image, mask):
        self.model.eval()
        logits = self.model(image)
        return F.binary_cross_entropy_with_logits(logits, mask).item(), dice(logits, mask)

    def fit(self, train, val):
        image, mask = train
        self.model.train()
        for epoch in range(self.epochs):
            losses = [self.train_batch(image[i], mask[i]) for i in torch.randperm(len(image)).split(self.batch)]
            val_loss, val_dice = self.validate(*val)
            self.log.append((sum(losses) / len(losses), val_loss, val_dice))
            print("epoch {} train {:.4f} val {:.4f} dice {:.3f}".format(epoch, *self.log[-1]))


segmenter = Segmenter()
segmenter.fit(scans(100), scans(40))
print(f"best validation dice {max(d for _, _, d in segmenter.log):.3f}")
