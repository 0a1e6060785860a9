import torch
from torch import nn

torch.manual_seed(11)
FRAMES, MELS, SPEAKERS = 30, 16, 5


def utterances(n):
    who = torch.randint(SPEAKERS, (n,))
    voice = torch.linspace(-1, 1, SPEAKERS * MELS).view(SPEAKERS, MELS).sin() * 2
    x = torch.randn(n, FRAMES, MELS)
    voiced = torch.rand(n, FRAMES) < 0.25
    x[..., 0] = x[..., 0] + 4 * voiced
    x = x + voiced.unsqueeze(-1) * voice[who].unsqueeze(1)
    return x, who


class SpeakerNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.frame = nn.Sequential(nn.Linear(MELS, width), nn.GELU())
        self.energy = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 1))
        self.out = nn.Linear(width, SPEAKERS)

    def weigh(self, h):
        e = self.energy(h)
        return torch.exp(e - torch.logsumexp(e, dim=1, keepdim=True))

    def forward(self, x):
        h = self.frame(x)
        w = self.weigh(h)
        return self.out((w * h).sum(1))


net = SpeakerNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for step in range(80):
    x, who = utterances(48)
    loss = criterion(net(x), who)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 19:
        print(f"step {step + 1} loss {loss.item():.4f}")
with torch.no_grad():
    x, who = utterances(400)
    print(f"identification {(net(x).argmax(-1) == who).float().mean():.3f}")
