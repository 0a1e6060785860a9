import random
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

random.seed(12)
torch.manual_seed(12)


class RandomHorizontalFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, x):
        if random.random() < self.p:
            return torch.flip(x, dims=[-1])
        return x


class LesionDataset(Dataset):
    def __init__(self, n, size=16, transform=None):
        self.transform = transform
        self.images, self.masks = [], []
        for _ in range(n):
            mask = torch.zeros(1, size, size)
            r, c = random.randint(0, 10), random.randint(0, 10)
            mask[:, r:r + 5, c:c + 5] = 1.0
            self.masks.append(mask)
            self.images.append(mask * 0.8 + 0.3 * torch.randn(1, size, size))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image, mask = self.images[idx], self.masks[idx]
        if self.transform is not None:
            both = self.transform(torch.cat([image, mask], dim=0))
            image, mask = both[:1], both[1:]
        return image, mask


class SmallSegNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(width, width, 5, padding=2), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        return self.head(self.mid(self.down(x)))


def dice_score(logits, target):
    pred = (torch.sigmoid(logits) > 0.5).float()
    return ((2 * (pred * target).sum() + 1) / (pred.sum() + target.sum() + 1)).item()


train_set = LesionDataset(192, transform=RandomHorizontalFlip(p=0.5))
val_set = LesionDataset(48)
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
model = SmallSegNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(6):
    model.train()
    train_loss = 0.0
    for images, masks in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), masks)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        dice = dice_score(model(torch.stack(val_set.images)), torch.stack(val_set.masks))
    print(f"Epoch {epoch + 1}/6 loss {train_loss:.4f} val dice {dice:.4f}")
