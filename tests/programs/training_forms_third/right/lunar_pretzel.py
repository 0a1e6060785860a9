import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(19)
RATERS, MOODS = 5, 4


def rate(x, truth):
    noise = torch.randn(len(x), RATERS, MOODS) * 0.9
    opinion = (x @ truth).unsqueeze(1) + noise
    return F.one_hot(opinion.argmax(-1), MOODS)


class Clips:
    def __init__(self, n):
        self.x = torch.randn(n, 16)
        self.votes = rate(self.x, torch.randn(16, MOODS) * 0.5)
        self.soft = self.consensus()

    def consensus(self):
        table = torch.zeros_like(self.votes[:, 0], dtype=torch.float32)
        for row, ballots in enumerate(self.votes):
            table[row] = ballots.float().mean(dim=0)
        return table

    def batches(self, size):
        for pick in torch.randperm(len(self.x)).split(size):
            yield self.x[pick], self.soft[pick]


def divergence(scores, soft):
    return -(soft * scores.log_softmax(-1)).sum(-1).mean()


clips = Clips(320)
net = nn.Sequential(nn.Linear(16, 32), nn.CELU(), nn.Linear(32, MOODS))
opt = torch.optim.Adadelta(net.parameters(), lr=0.5)
for epoch in range(10):
    total = 0.0
    for x, soft in clips.batches(40):
        loss = divergence(net(x), soft)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 3 == 0:
        print(f"epoch {epoch}: {total / 8:.4f}")
with torch.no_grad():
    share = clips.votes.float().mean(1)
    print("against all votes", divergence(net(clips.x), share).item())
