import torch
from torch import nn


class TopicFactors(nn.Module):
    def __init__(self, docs, words, topics):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(docs, topics))
        self.topic = nn.Parameter(torch.rand(topics, words))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, rows):
        return self.mix[rows] @ self.topic + self.bias


class NonNegative:
    def __init__(self, names):
        self.names = names

    def __call__(self, model):
        for name in self.names:
            bounded = getattr(model, name).detach().clamp(min=0)
            setattr(model, name, nn.Parameter(bounded))


class Factorizer:
    def __init__(self, model, constraints=(), lr=0.02):
        self.model = model
        self.constraints = constraints
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.trace = []

    def update(self, counts, rows):
        residual = self.model(rows) - counts[rows]
        loss = residual.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        for constraint in self.constraints:
            constraint(self.model)
        return loss.item()

    def fit(self, counts, epochs, g):
        for epoch in range(epochs):
            losses = [self.update(counts, rows) for rows in torch.randperm(len(counts), generator=g).split(20)]
            self.trace.append(sum(losses) / len(losses))
        return self


def corpus(docs, words, topics, g):
    mix = torch.rand(docs, topics, generator=g) ** 4
    topic = torch.rand(topics, words, generator=g) ** 6
    return mix @ topic * 6 + 0.3


if __name__ == "__main__":
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    counts = corpus(60, 40, 4, g)
    model = TopicFactors(60, 40, 4)
    worker = Factorizer(model, constraints=[NonNegative(["mix", "topic"])]).fit(counts, 12, g)
    for e, value in enumerate(worker.trace):
        print(f"epoch {e} error {value:.4f}")
    print("smallest entry", round(min(model.mix.min().item(), model.topic.min().item()), 4))
