"""Thompson sampling of articles for visitors: a network makes the features, a Bayesian linear layer the choice."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Visitors:
    """Visitors with context vectors; clicks depend on a hidden nonlinear match of visitor and article."""

    def __init__(self, articles, dim):
        self.dim = dim
        self.left = torch.randn(dim, 6) / dim ** 0.5
        self.taste = torch.randn(articles, 6)

    def arrive(self, n):
        return torch.randn(n, self.dim)

    def click_rate(self, context):
        return torch.sigmoid(2 * torch.tanh(context @ self.left * 2) @ self.taste.T - 1)

    def clicks(self, context, article):
        rate = self.click_rate(context)
        chosen = rate.gather(1, article.unsqueeze(1)).squeeze(1)
        return torch.bernoulli(chosen), rate.max(1).values - chosen


class FeatureNet(nn.Module):
    def __init__(self, dim, articles, width=64, features=16):
        super().__init__()
        self.articles = nn.Embedding(articles, 8)
        self.body = nn.Sequential(nn.Linear(dim + 8, width), nn.ReLU(), nn.Linear(width, features), nn.Tanh())
        self.head = nn.Linear(features, 1)

    def forward(self, context, article):
        return self.body(torch.cat([context, self.articles(article)], -1))

    def predict(self, context, article):
        return self.head(self.forward(context, article)).squeeze(-1)


class NeuralLinear:
    def __init__(self, dim, articles, features=16, noise=0.25, forget=0.995):
        self.net = FeatureNet(dim, articles, features=features)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=2e-3)
        self.count = articles
        self.noise, self.forget = noise, forget
        self.prior = torch.eye(features)
        self.precision = torch.eye(features)
        self.moment = torch.zeros(features)
        self.log = []

    @torch.no_grad()
    def choose(self, context):
        n = len(context)
        pairs = context.unsqueeze(1).expand(n, self.count, -1)
        phi = self.net(pairs, torch.arange(self.count).expand(n, -1))
        chol = torch.linalg.cholesky(self.precision)
        mean = torch.cholesky_solve(self.moment.unsqueeze(1), chol).squeeze(1)
        draw = torch.linalg.solve_triangular(chol.T, torch.randn(len(mean), n), upper=True).T
        weights = mean + self.noise ** 0.5 * draw
        return torch.einsum("nak,nk->na", phi, weights).argmax(1)

    def observe(self, context, article, click):
        phi = self.net(context, article)
        self.precision = self.forget * self.precision + (1 - self.forget) * self.prior + phi.T @ phi
        self.moment = self.forget * self.moment + phi.T @ (click - 0.5)
        self.log.append((context, article, click))
        self.log = self.log[-100:]

    def refit(self, steps=2, batch=6):
        for _ in range(steps):
            picks = torch.randint(len(self.log), (batch,)).tolist()
            context, article, click = (torch.cat(parts) for parts in zip(*(self.log[i] for i in picks)))
            loss = F.binary_cross_entropy_with_logits(self.net.predict(context, article), click)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main(rounds=200, visitors=32, articles=6, dim=10):
    torch.manual_seed(19)
    world, agent = Visitors(articles, dim), NeuralLinear(dim, articles)
    regret, clicks = [], []
    for t in range(rounds):
        context = world.arrive(visitors)
        article = agent.choose(context)
        click, gap = world.clicks(context, article)
        agent.observe(context, article, click)
        loss = agent.refit()
        regret.append(gap.mean().item())
        clicks.append(click.mean().item())
        if t % 50 == 49:
            print(f"round {t + 1:4d}  clicks {sum(clicks[-50:]) / 50:.3f}  regret {sum(regret[-50:]) / 50:.3f}  loss {loss:.3f}")
    return agent, regret


if __name__ == "__main__":
    agent, regret = main()
    print("total regret", round(sum(regret), 2))
