"""Convolutional network with channel gating."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvAct(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.bn = nn.BatchNorm2d(c_out)
        self.act = nn.ReLU()

    def forward(self, x):
        x = self.bn(self.conv(x))
        return self.act(x)


class ChannelGate(nn.Module):
    def __init__(self, channels, squeeze=4):
        super().__init__()
        self.down = nn.Linear(channels, channels // squeeze)
        self.up = nn.Linear(channels // squeeze, channels)

    def forward(self, x):
        summary = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.up(F.relu(self.down(summary))))
        return x * gate[:, :, None, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage1 = nn.Sequential(ConvAct(1, 8), ChannelGate(8))
        self.stage2 = nn.Sequential(ConvAct(8, 16), ChannelGate(16))
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        x = F.max_pool2d(self.stage1(x), 2)
        x = self.stage2(x)
        return self.fc(x.flatten(2).mean(-1))


if __name__ == "__main__":
    torch.manual_seed(17)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(2):
        images, labels = torch.randn(4, 1, 8, 8), torch.randint(0, 3, (4,))
        loss = F.cross_entropy(net(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
