import torch
import torch.nn as nn
import torch.nn.functional as F


class LeafNet(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.trunk = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(16 * 9, n_classes)

    def forward(self, x):
        return self.head(self.trunk(self.stem(x)).flatten(1))


class StageSchedule:
    def __init__(self, model, plan):
        self.model = model
        self.plan = plan
        self.log = []

    def on_epoch_start(self, epoch):
        if epoch not in self.plan:
            return
        wanted = self.plan[epoch]
        for name, module in self.model.named_children():
            module.requires_grad_(name in wanted)
        self.log.append((epoch, tuple(wanted)))


class Trainer:
    def __init__(self, model, callbacks, lr=0.03, momentum=0.9):
        self.model = model
        self.callbacks = callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, nesterov=True)
        self.snapshots = {}

    def snapshot(self, epoch):
        self.snapshots[epoch] = {k: v.clone() for k, v in self.model.state_dict().items()}

    def train_step(self, image, label):
        loss = F.cross_entropy(self.model(image), label)
        self.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, data, epochs, batch_size=32):
        image, label = data
        for epoch in range(epochs):
            for callback in self.callbacks:
                callback.on_epoch_start(epoch)
            self.snapshot(epoch)
            losses = []
            for idx in torch.randperm(len(image)).split(batch_size):
                losses.append(self.train_step(image[idx], label[idx]))
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
        self.snapshot(epochs)


def make_leaves(n=192, size=12):
    label = torch.randint(0, 4, (n,))
    grid = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    angle = label.float()[:, None, None] * torch.pi / 4
    wave = torch.cos(6 * (xx * torch.cos(angle) + yy * torch.sin(angle)))
    return (wave + 2.0 * torch.randn(n, size, size))[:, None], label


def main():
    torch.manual_seed(0)
    model = LeafNet()
    plan = {0: ["stem", "trunk", "head"], 3: ["trunk", "head"], 5: ["head"]}
    trainer = Trainer(model, [StageSchedule(model, plan)])
    trainer.fit(make_leaves(), epochs=7)
    return trainer


if __name__ == "__main__":
    trainer = main()
