"""Pick the most relevant patch of an image, then classify that patch."""
import torch
from torch import nn
import torch.nn.functional as F

PATCHES, DIM, CLASSES = 9, 16, 4


class PatchPicker(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(DIM, 32), nn.Tanh(), nn.Linear(32, 1))
        self.classifier = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, CLASSES))

    def forward(self, patches):
        scores = self.scorer(patches).squeeze(-1)
        best = scores.argmax(dim=1)
        rows = torch.arange(patches.shape[0])
        chosen = patches[rows, best]
        return self.classifier(chosen)


def make_images(n):
    prototypes = torch.randn(CLASSES, DIM) * 2
    patches = torch.randn(n, PATCHES, DIM) * 0.5
    labels = torch.randint(CLASSES, (n,))
    where = torch.randint(PATCHES, (n,))
    patches[torch.arange(n), where] += prototypes[labels]
    return patches, labels


def accuracy(model, patches, labels):
    model.eval()
    with torch.no_grad():
        acc = (model(patches).argmax(1) == labels).float().mean().item()
    model.train()
    return acc


def run():
    torch.manual_seed(11)
    patches, labels = make_images(800)
    train_x, train_y = patches[:640], labels[:640]
    test_x, test_y = patches[640:], labels[640:]
    model = PatchPicker()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    for epoch in range(10):
        order = torch.randperm(len(train_x))
        for idx in order.split(64):
            loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.4f} test acc {accuracy(model, test_x, test_y):.3f}")
    return model, opt


if __name__ == "__main__":
    run()
