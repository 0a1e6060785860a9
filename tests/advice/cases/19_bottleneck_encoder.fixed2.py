"""Dense prediction encoder with projection shortcuts."""
import torch
import torch.nn as nn


class Bottleneck(nn.Module):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        self.residual = nn.Sequential(
            nn.ReLU(inplace=True),
            nn.Conv2d(c_in, c_out, 3, stride=stride, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_out, c_out, 3, padding=1),
        )
        self.project = None
        if stride != 1 or c_in != c_out:
            self.project = nn.Conv2d(c_in, c_out, 1, stride=stride)

    def forward(self, x):
        if self.project is not None:
            shortcut = self.project(x.clone())
        else:
            shortcut = x
        change = self.residual(x)
        return change + shortcut


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.stage1 = Bottleneck(8, 8)
        self.stage2 = Bottleneck(8, 12, stride=2)
        self.predict = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        return self.predict(self.stage2(self.stage1(self.stem(x))))


def fit(model, steps=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(steps):
        image, mask = torch.randn(2, 3, 8, 8), (torch.rand(2, 1, 4, 4) > 0.5).float()
        loss = criterion(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


torch.manual_seed(18)
fit(Encoder())
