import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(61)


class WordDrop(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, words):
        if not self.training:
            return words
        lost = torch.rand(words.shape) < self.rate
        return words.masked_fill(lost, 0)


class IntentNet(nn.Module):
    def __init__(self, vocabulary=80, intents=5):
        super().__init__()
        self.drop = WordDrop(0.4)
        self.bag = nn.EmbeddingBag(vocabulary, 32, padding_idx=0)
        self.out = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, intents))

    def forward(self, words):
        return self.out(self.bag(self.drop(words)))


class Report:
    def __init__(self, words, intents, every=5):
        self.words, self.intents, self.every = words, intents, every

    def __call__(self, step, net, loss):
        if step % self.every:
            return
        net.train(False)
        with torch.inference_mode():
            hits = net(self.words).argmax(-1).eq(self.intents).float().mean()
        if step % 30 == 0:
            print(f"step {step} loss {loss:.4f} held-out {hits.item():.3f}")


def queries(n):
    intent = torch.randint(0, 5, (n,))
    own = 1 + intent[:, None] * 10 + torch.randint(0, 10, (n, 9))
    other = torch.randint(1, 80, (n, 9))
    return torch.where(torch.rand(n, 9) < 0.3, own, other), intent


def train(net, words, intents, callbacks):
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    net.train(True)
    for step in range(1, 121):
        pick = torch.randint(0, len(words), (50,))
        loss = F.cross_entropy(net(words[pick]), intents[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        for callback in callbacks:
            callback(step, net, loss.item())


train(IntentNet(), *queries(400), callbacks=[Report(*queries(400))])
