import torch
from torch import nn
import torch.nn.functional as F


def tower(bands, width, phones, drop):
    return nn.Sequential(
        nn.Conv1d(bands, width, 3, padding=1), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(drop),
        nn.Conv1d(width, phones, 1),
    )


class FrameDistiller(nn.Module):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher, self.student = teacher, student
        self.adapt = nn.Conv1d(5, 5, 1)
        self.train()

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def trainable(self):
        return [p for n, p in self.named_parameters() if not n.startswith("teacher.")]

    def forward(self, x):
        with torch.inference_mode():
            soft = self.teacher(x).softmax(1)
        soft = soft.clone()
        return F.kl_div(F.log_softmax(self.adapt(self.student(x)), 1), soft, reduction="none").sum(1).mean()


def frames(n, g):
    proto = torch.randn(5, 12, generator=torch.Generator().manual_seed(40))
    label = torch.randint(0, 5, (n, 4), generator=g).repeat_interleave(5, 1)
    return proto[label].transpose(1, 2) + 0.9 * torch.randn(n, 12, 20, generator=g), label


def teach(model, x, y, epochs=5):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(epochs):
        for xb, yb in zip(x.split(32), y.split(32)):
            opt.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            opt.step()
    return model


def distill(pair, x, epochs=5):
    opt = torch.optim.Adam(pair.trainable(), lr=5e-3)
    for epoch in range(epochs):
        pair.train()
        for xb in x.split(32):
            loss = pair(xb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        pair.eval()
        print(f"epoch {epoch} train {loss.item():.4f} held {pair(x[:64]).item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = frames(256, torch.Generator().manual_seed(1))
    teacher = teach(tower(12, 48, 5, 0.3), x, y)
    pair = FrameDistiller(teacher, tower(12, 8, 5, 0.0))
    before = teacher[1].running_mean.clone()
    distill(pair, x)
    print("teacher unchanged", torch.equal(before, teacher[1].running_mean))
