"""Transfer learning for fabric-defect photos: train the head on a source-task backbone, then unfreeze everything."""
import torch
import torch.nn.functional as F
from torch import nn

SEED = 29
SIZE = 12
CLASSES = 4
EPOCHS = 14
UNFREEZE_AT = 3
BATCH = 32


def make_photos(n, kinds, shift, seed):
    """Woven background with a class-dependent stripe pattern; `shift` rotates the patterns for the target task."""
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(kinds, (n,), generator=g)
    axis = torch.arange(SIZE).float()
    angle = (label.float() / kinds * torch.pi + shift)[:, None, None]
    phase = 2 * torch.pi * torch.rand(n, 1, 1, generator=g)
    pattern = torch.sin(1.6 * (angle.cos() * axis[:, None] + angle.sin() * axis[None]) + phase)
    weave = 0.5 * torch.sin(2.9 * axis)[:, None] * torch.sin(2.9 * axis)[None]
    return (pattern + weave + 1.8 * torch.randn(n, SIZE, SIZE, generator=g))[:, None], label


class DefectNet(nn.Module):
    def __init__(self, classes, width=12):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(3, width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.GroupNorm(3, 2 * width), nn.ReLU())
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        return self.head(self.backbone(x).mean((2, 3)))


class Trainer:
    def __init__(self, model, lr, steps):
        self.model = model
        self.model.backbone.requires_grad_(False)
        self.optimizer = torch.optim.SGD(model.head.parameters(), lr=lr, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, lr, total_steps=steps, pct_start=0.2)
        self.history = []

    def unfreeze(self, scale=0.5):
        lr = self.optimizer.param_groups[0]["lr"]
        self.model.backbone.requires_grad_(True)
        self.optimizer = torch.optim.SGD(
            [{"params": self.model.head.parameters(), "lr": lr},
             {"params": self.model.backbone.parameters(), "lr": lr * scale}], momentum=0.9, nesterov=True)

    def epoch(self, image, label):
        self.model.train()
        total = 0.0
        for index in torch.randperm(len(image)).split(BATCH):
            loss = F.cross_entropy(self.model(image[index]), label[index])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item() * len(index)
        self.history.append(total / len(image))

    @torch.no_grad()
    def accuracy(self, image, label):
        self.model.eval()
        return (self.model(image).argmax(1) == label).float().mean().item()


def pretrain(model, image, label):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(3):
        for index in torch.randperm(len(image)).split(BATCH):
            loss = F.cross_entropy(model(image[index]), label[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def main():
    torch.manual_seed(SEED)
    source = make_photos(960, 6, 0.0, SEED)
    model = pretrain(DefectNet(6), *source)
    model.head = nn.Linear(model.head.in_features, CLASSES)
    image, label = make_photos(1200, CLASSES, 0.35, SEED + 1)
    train, test = slice(0, 640), slice(640, None)
    trainer = Trainer(model, lr=0.05, steps=EPOCHS * (640 // BATCH))
    for epoch in range(EPOCHS):
        if epoch == UNFREEZE_AT:
            trainer.unfreeze()
        trainer.epoch(image[train], label[train])
        if epoch in (UNFREEZE_AT - 1, EPOCHS // 2, EPOCHS - 1):
            print(f"epoch {epoch + 1}: lr {trainer.scheduler.get_last_lr()[0]:.2e} loss {trainer.history[-1]:.3f} "
                  f"test accuracy {trainer.accuracy(image[test], label[test]):.3f}")
    return trainer, image[test], label[test]


if __name__ == "__main__":
    trainer, test_image, test_label = main()
