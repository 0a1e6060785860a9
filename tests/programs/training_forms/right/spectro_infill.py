import torch
import torch.nn.functional as F
from torch import nn


class Infill(nn.Module):
    def __init__(self, bins, width):
        super().__init__()
        self.encode = nn.GRU(bins, width, batch_first=True, bidirectional=True)
        self.paint = nn.Linear(2 * width, bins)

    def forward(self, frames):
        return self.paint(self.encode(frames)[0])


class Pretrainer:
    def __init__(self, model, longest=4, bands=2):
        self.model = model
        self.longest, self.bands = longest, bands
        self.optimizer = torch.optim.Adamax(model.parameters(), lr=0.01)

    def blank(self, frames):
        length = int(torch.randint(1, self.longest + 1, ()))
        start = int(torch.randint(frames.size(1) - length, ()))
        frames.narrow(1, start, length).zero_()
        low = int(torch.randint(frames.size(2) - self.bands, ()))
        frames[..., low:low + self.bands] = 0.0
        return frames

    def step(self, spec):
        frames = spec.transpose(1, 2).clone()
        guess = self.model(self.blank(frames))
        loss = F.l1_loss(guess.transpose(1, 2), spec)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def spectrograms(n, bins, length):
    time = torch.linspace(0, 1, length)
    slope = torch.randn(n, bins, 1)
    level = 1 + torch.rand(n, 1, 1)
    return level + slope * time + 0.05 * torch.randn(n, bins, length)


def main():
    torch.manual_seed(12)
    corpus = spectrograms(320, 10, 14)
    trainer = Pretrainer(Infill(10, 16))
    for epoch in range(10):
        losses = []
        for rows in torch.randperm(len(corpus)).split(40):
            losses.append(trainer.step(corpus[rows]))
        print(f"epoch {epoch} distance {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
