import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(53)


class Whiten(nn.Module):
    def __init__(self, bands, rate=0.1):
        super().__init__()
        self.rate = rate
        self.register_buffer("centre", torch.zeros(bands))
        self.register_buffer("spread", torch.ones(bands))

    def forward(self, frames):
        centre, spread = self.centre, self.spread
        if self.training:
            with torch.no_grad():
                deviation, middle = torch.std_mean(frames, dim=(0, 1))
                centre = self.centre.lerp(middle, self.rate)
                spread = self.spread.lerp(deviation, self.rate)
        return (frames - centre) / spread


class KeywordNet(nn.Module):
    def __init__(self, bands=16, words=4):
        super().__init__()
        self.front = Whiten(bands)
        self.conv = nn.Conv1d(bands, 24, 5, padding=2)
        self.out = nn.Linear(24, words)

    def forward(self, frames):
        h = self.front(frames).transpose(1, 2)
        return self.out(F.relu(self.conv(h)).mean(2))


def clips(n, shapes, bias):
    word = torch.randint(0, 4, (n,))
    return 6.0 + bias + 3.0 * (shapes[word] + 0.8 * torch.randn(n, 20, 16)), word


shapes, bias = 0.6 * torch.randn(4, 20, 16), 2 * torch.randn(16)
train, held = clips(400, shapes, bias), clips(200, shapes, bias)
net = KeywordNet()
opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, nesterov=True)
for epoch in range(6):
    net.train()
    for frames, word in zip(*(t.split(40) for t in train)):
        loss = F.cross_entropy(net(frames), word)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        rate = (net(held[0]).argmax(1) == held[1]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} held-out accuracy {rate:.3f}")
