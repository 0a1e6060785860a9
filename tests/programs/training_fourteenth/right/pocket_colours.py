"""Batch-normalised classifier on tiny colour textures, read out with averaged weights (swapped in for evaluation)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 41
SIZE = 12
CLASSES = 5
EPOCHS = 6
AVERAGE_FROM = 2
torch.manual_seed(SEED)


def make_textures(n, gen):
    """Gratings of five directions with random colours, phases and contrasts."""
    label = torch.randint(0, CLASSES, (n,), generator=gen)
    angle = math.pi * label / CLASSES + 0.15 * torch.randn(n, generator=gen)
    yy, xx = torch.meshgrid(torch.arange(SIZE).float(), torch.arange(SIZE).float(), indexing="ij")
    along = xx * angle.cos().view(-1, 1, 1) + yy * angle.sin().view(-1, 1, 1)
    wave = torch.sin(1.4 * along + 6.28 * torch.rand(n, 1, 1, generator=gen))
    colour = torch.rand(n, 3, 1, 1, generator=gen) * 2
    return colour * wave.unsqueeze(1) + torch.rand(n, 3, 1, 1, generator=gen) + 0.6 * torch.randn(n, 3, SIZE, SIZE, generator=gen), label


class TextureNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.head = nn.Linear(8 * width, CLASSES)

    def forward(self, x):
        return self.head(self.features(x))


class WeightAverage:
    """Plain mean of the weights it has seen. Inside `with`, the model has the mean's weights and fitting statistics."""

    def __init__(self, model, inputs):
        self.params = list(model.parameters())
        self.model, self.inputs = model, inputs
        self.mean = [torch.zeros_like(p) for p in self.params]
        self.seen = 0

    @torch.no_grad()
    def update(self):
        self.seen += 1
        for mean, p in zip(self.mean, self.params):
            mean += (p - mean) / self.seen

    @torch.no_grad()
    def __enter__(self):
        self.before = {k: v.clone() for k, v in self.model.state_dict().items()}
        for mean, p in zip(self.mean, self.params):
            p.copy_(mean)
        norms = [m for m in self.model.modules() if isinstance(m, nn.BatchNorm2d)]
        # statistics of the inputs under the averaged weights, batches weighted alike
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        self.model.train()
        for chunk in self.inputs.split(100):
            self.model(chunk)
        for norm in norms:
            norm.momentum = 0.1
        self.model.eval()

    def __exit__(self, *exc):
        self.model.load_state_dict(self.before)
        self.model.train()


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    gen = torch.Generator().manual_seed(SEED)
    x, y = make_textures(1000, gen)
    x_test, y_test = make_textures(500, gen)
    model = TextureNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9, weight_decay=1e-4)
    average = WeightAverage(model, x)
    for epoch in range(EPOCHS):
        model.train()
        for idx in torch.randperm(len(x)).split(25):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if epoch >= AVERAGE_FROM:
                average.update()
        model.eval()
        line = f"epoch {epoch}: current weights {accuracy(model, x_test, y_test):.3f}"
        if average.seen:
            with average:
                line += f"  averaged weights {accuracy(model, x_test, y_test):.3f}"
        print(line)


if __name__ == "__main__":
    main()
