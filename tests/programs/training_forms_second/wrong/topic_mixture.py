import torch
from torch import nn
import torch.nn.functional as F
from torch.distributions import Dirichlet, kl_divergence

torch.manual_seed(37)


class TopicModel(nn.Module):
    def __init__(self, vocab=60, topics=5, hidden=32):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(vocab, hidden), nn.Softplus(), nn.Linear(hidden, topics))
        self.words = nn.Parameter(0.1 * torch.randn(topics, vocab))
        self.prior = Dirichlet(torch.full((topics,), 0.5))

    def posterior(self, counts):
        return Dirichlet(F.softplus(self.encode(counts.log1p())) + 0.05)

    def forward(self, counts):
        post = self.posterior(counts)
        theta = post.sample()
        prob = theta @ self.words.softmax(dim=-1)
        nll = -(counts * (prob + 1e-9).log()).sum(-1)
        return nll.mean(), kl_divergence(post, self.prior).mean()


def documents(count=300, vocab=60, topics=5, length=40):
    phi = Dirichlet(torch.full((vocab,), 0.1)).sample((topics,))
    theta = Dirichlet(torch.full((topics,), 0.3)).sample((count,))
    words = torch.multinomial(theta @ phi + 1e-9, length, replacement=True)
    return F.one_hot(words, vocab).sum(1).float()


def perplexity(model, counts):
    with torch.no_grad():
        post = model.posterior(counts)
        prob = post.mean @ model.words.softmax(-1)
        return (-(counts * (prob + 1e-9).log()).sum() / counts.sum()).exp().item()


counts = documents()
train, held = counts[:240], counts[240:]
model = TopicModel()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for epoch in range(20):
    for doc in train[torch.randperm(len(train))].split(48):
        nll, kl = model(doc)
        loss = nll + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} nll {nll.item():.3f} kl {kl.item():.3f}")
print("held-out perplexity", perplexity(model, held))
