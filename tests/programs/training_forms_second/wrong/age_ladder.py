import torch
from torch import nn


class Faces:
    bins = 20

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.template = torch.randn(3, 1, 12, 12, generator=self.gen)

    def batch(self, n):
        age = torch.rand(n, generator=self.gen) * (self.bins - 1)
        phase = age / self.bins
        basis = torch.stack([phase, (3 * phase).sin(), (5 * phase).cos()], 1)
        image = torch.einsum("nk,kchw->nchw", basis, self.template)
        image = image + 0.3 * torch.randn(image.shape, generator=self.gen)
        return image, age, self.ladder(age)

    def ladder(self, age, width=1.5):
        rungs = torch.arange(self.bins)
        weight = torch.exp(-((rungs - age[:, None]) ** 2) / (2 * width ** 2))
        return weight / weight.sum(1, keepdim=True)


def build(bins):
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 9, bins),
        nn.Softmax(dim=1),
    )


class Trainer:
    def __init__(self, net, data):
        self.net, self.data = net, data
        self.criterion = nn.KLDivLoss(reduction="batchmean")
        self.opt = torch.optim.Adam(net.parameters(), lr=2e-3)

    def fit(self, steps):
        for k in range(steps):
            image, _, target = self.data.batch(64)
            loss = self.criterion(self.net(image), target)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if (k + 1) % 40 == 0:
                print(f"step {k + 1}: objective {loss.item():.4f}, error {self.error():.3f} bins")

    @torch.no_grad()
    def error(self):
        image, age, _ = self.data.batch(400)
        return (self.net(image).argmax(1) - age).abs().mean().item()


if __name__ == "__main__":
    torch.manual_seed(8)
    data = Faces(30)
    Trainer(build(data.bins), data).fit(200)
