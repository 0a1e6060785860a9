"""Domain-adversarial training with a gradient reversal layer."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
        self.label = nn.Linear(16, 2)
        self.domain = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x, strength):
        h = self.features(x)
        return self.label(h), self.domain(Reverse.apply(h, strength))


def domain_data(n, shift):
    x = torch.randn(n, 10)
    y = (x[:, 0] + x[:, 1] > 0).long()
    x[:, 2:6] += shift
    return x, y


def main():
    torch.manual_seed(45)
    xs, ys = domain_data(512, 0.0)
    xt, _ = domain_data(512, 1.5)
    x_test, y_test = domain_data(300, 1.5)
    model = DANN()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    epochs = 10
    for epoch in range(epochs):
        strength = 0.5 * epoch / epochs
        order_s, order_t = torch.randperm(512).split(64), torch.randperm(512).split(64)
        for i, j in zip(order_s, order_t):
            x = torch.cat([xs[i], xt[j]])
            d = torch.cat([torch.zeros(len(i)), torch.ones(len(j))]).long()
            label_logits, domain_logits = model(x, strength)
            loss_label = F.cross_entropy(label_logits[: len(i)], ys[i])
            loss_domain = F.cross_entropy(domain_logits, d)
            opt.zero_grad()
            (loss_label + loss_domain).backward()
            opt.step()
        with torch.no_grad():
            acc = (model(x_test, 0.0)[0].argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: label {loss_label.item():.4f} domain {loss_domain.item():.4f} target acc {acc:.3f}")


if __name__ == "__main__":
    main()
