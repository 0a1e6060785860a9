import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class StarNet(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(3, channels), nn.GroupNorm(3, channels)
        self.flux = nn.Linear(channels, 1)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.avg_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.flux(x.mean(dim=(2, 3))).squeeze(1)


class Trainer:
    def __init__(self, model, lr=0.1, micro_per_step=4, max_norm=0.1):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.2, 1.0, total_iters=5)
        self.micro_per_step = micro_per_step
        self.max_norm = max_norm
        self.pending = 0
        self.updates = 0

    def backward(self, loss):
        (loss / self.micro_per_step).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.pending += 1

    def maybe_step(self):
        if self.pending < self.micro_per_step:
            return
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()
        self.pending = 0
        self.updates += 1

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            total = 0.0
            for image, flux in loader:
                loss = F.mse_loss(self.model(image), flux)
                self.backward(loss)
                self.maybe_step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.4f} updates {self.updates}")


def make_images(n=128, size=12):
    brightness = 2 + 3 * torch.rand(n)
    image = 0.1 * torch.randn(n, 1, size, size)
    rows = torch.randint(1, size - 1, (n,))
    cols = torch.randint(1, size - 1, (n,))
    image[torch.arange(n), 0, rows, cols] += brightness
    return TensorDataset(image, (brightness - brightness.mean()) / brightness.std())


def main(epochs=5):
    torch.manual_seed(5)
    loader = DataLoader(make_images(), batch_size=8, shuffle=True)
    trainer = Trainer(StarNet())
    trainer.fit(loader, epochs)
    return trainer


if __name__ == "__main__":
    trainer = main()
