import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)


class SpeakerNet(nn.Module):
    def __init__(self, mels=20, width=32, speakers=6):
        super().__init__()
        self.frames = nn.Sequential(
            nn.Conv1d(mels, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1), nn.ReLU())
        self.decoder = nn.Conv1d(width, mels, 1)
        self.classifier = nn.Linear(2 * width, speakers)

    def reconstruct(self, mel):
        return self.decoder(self.frames(mel))

    @torch.no_grad()
    def embed(self, mel):
        h = self.frames(mel)
        return F.normalize(torch.cat([h.mean(-1), h.std(-1)], dim=1), dim=1)

    def forward(self, mel):
        return self.classifier(self.embed(mel) * 8.0)


def make_corpus(count=240, mels=20, length=40, speakers=6):
    who = torch.randint(speakers, (count,))
    timbre = torch.randn(speakers, mels)
    rhythm = torch.rand(speakers) * 3 + 0.5
    t = torch.linspace(0, 6.28, length)
    wave = torch.sin(rhythm[who][:, None] * t)[:, None, :]
    mel = 0.3 * timbre[who][:, :, None] * wave + 0.7 * torch.randn(count, mels, length)
    return mel, who


def batches(mel, who, size=40):
    for idx in torch.randperm(len(mel)).split(size):
        yield mel[idx], who[idx]


mel, who = make_corpus()
net = SpeakerNet()

warm = torch.optim.Adam([*net.frames.parameters(), *net.decoder.parameters()], lr=2e-3)
for epoch in range(4):
    for x, _ in batches(mel, who):
        noisy = x + 0.3 * torch.randn_like(x)
        rec = F.mse_loss(net.reconstruct(noisy), x)
        warm.zero_grad()
        rec.backward()
        warm.step()
    print(f"pretrain {epoch}: {rec.item():.4f}")

tune = torch.optim.AdamW([
    {"params": net.frames.parameters(), "lr": 1e-3},
    {"params": net.classifier.parameters(), "lr": 1e-2},
], weight_decay=0.0)
for epoch in range(10):
    for x, y in batches(mel, who):
        loss = F.cross_entropy(net(x), y)
        tune.zero_grad()
        loss.backward()
        tune.step()
    print(f"finetune {epoch}: {loss.item():.4f}")

net.eval()
with torch.no_grad():
    print("accuracy", (net(mel).argmax(1) == who).float().mean().item())
