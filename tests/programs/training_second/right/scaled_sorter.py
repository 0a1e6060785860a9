import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ParcelNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.SiLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.SiLU(),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64, classes),
        )

    def forward(self, x):
        return self.net(x)


def parcels(n, gen):
    kind = torch.randint(0, 4, (n,), generator=gen)
    image = 0.2 * torch.randn(n, 1, 12, 12, generator=gen)
    for i, k in enumerate(kind.tolist()):
        top, left = torch.randint(0, 6, (2,), generator=gen).tolist()
        height, width = ((3, 3), (6, 2), (2, 6), (6, 6))[k]
        image[i, 0, top : top + height, left : left + width] += 1.0
    return TensorDataset(image, kind)


class ScaledTrainer:
    def __init__(self, model, lr, max_norm):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(x).float(), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


def main():
    torch.manual_seed(211)
    gen = torch.Generator().manual_seed(211)
    train = DataLoader(parcels(320, gen), batch_size=32, shuffle=True, generator=gen)
    model = ParcelNet()
    trainer = ScaledTrainer(model, lr=0.05, max_norm=2.0)
    for epoch in range(7):
        losses = [trainer.step(x, y) for x, y in train]
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
    image, kind = parcels(200, gen).tensors
    with torch.no_grad():
        print(f"test accuracy {(model(image).argmax(1) == kind).float().mean():.3f}")


if __name__ == "__main__":
    main()
