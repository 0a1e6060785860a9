"""Fine-tune on tiny batches of scans: the batch-norm layers of the pretrained network stay in eval mode on purpose."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


def scans(n, shift):
    label = torch.randint(0, 2, (n,))
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    centre = 0.5 * torch.randn(n, 2, 1, 1)
    distance = ((xs - centre[:, 0]) ** 2 + (ys - centre[:, 1]) ** 2).sqrt()
    width = (0.25 + 0.2 * label + shift)[:, None, None]
    image = torch.exp(-(distance / width) ** 2) + 0.4 * torch.randn(n, 16, 16)
    return image[:, None], label


class ScanNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        )
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(16, 2)
        self.freeze_norm = False

    def train(self, mode=True):
        super().train(mode)
        if self.freeze_norm:
            for module in self.features.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    def forward(self, x):
        return self.head(self.dropout(self.features(x).mean((2, 3))))


def run(model, images, labels, epochs, batch, lr):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in range(epochs):
        model.train()
        for idx in torch.randperm(len(images)).split(batch):
            loss = F.cross_entropy(model(images[idx]), labels[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


model = ScanNet()
run(model, *scans(600, 0.0), epochs=5, batch=30, lr=5e-3)
test = scans(600, 0.12)
before = accuracy(model, *test)

# Batches of two are too small for batch statistics: keep those of the pretraining, and the affine part with them.
model.freeze_norm = True
for module in model.features.modules():
    if isinstance(module, nn.BatchNorm2d):
        module.requires_grad_(False)
statistics = {k: v.clone() for k, v in model.state_dict().items() if "running" in k}
run(model, *scans(160, 0.12), epochs=4, batch=2, lr=1e-3)
assert model.dropout.training
after = accuracy(model, *test)
assert all(torch.equal(v, model.state_dict()[k]) for k, v in statistics.items())
print(f"accuracy at the new hospital {before:.3f} -> {after:.3f}")
