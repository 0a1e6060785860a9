import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
np.random.seed(8)


class TemporalBlock(nn.Module):
    def __init__(self, channels, dilation, dropout=0.1):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(channels, channels, kernel_size=3, dilation=dilation)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.relu(self.conv(self.pad(x))))


class TCN(nn.Module):
    def __init__(self, channels=24, dilations=(1, 2, 4)):
        super().__init__()
        self.inp = nn.Conv1d(1, channels, kernel_size=1)
        self.blocks = nn.ModuleList([TemporalBlock(channels, d) for d in dilations])
        self.out = nn.Conv1d(channels, 1, kernel_size=1)

    def forward(self, x):
        h = self.inp(x.unsqueeze(1))
        for block in self.blocks:
            h = block(h)
        return self.out(h).squeeze(1)


def make_windows(n_points=3000, length=49):
    t = np.arange(n_points)
    load = np.sin(2 * np.pi * t / 24) + 0.3 * np.sin(2 * np.pi * t / 168) + 0.4 * np.random.randn(n_points)
    starts = np.arange(0, n_points - length, 12)
    return torch.tensor(np.stack([load[s:s + length] for s in starts]), dtype=torch.float32)


windows = make_windows()
train, val = windows[:200], windows[200:]
loader = DataLoader(TensorDataset(train), batch_size=32, shuffle=True)
model = TCN()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(20):
    model.train()
    for (window,) in loader:
        inputs, targets = window[:, :-1], window[:, 1:]
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(val[:, :-1]), val[:, 1:])
        print(f"epoch {epoch + 1} train {loss.item():.4f} val {val_loss.item():.4f}")
