import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.weight * grad_output, None


class ScoringModel(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.score = nn.Linear(hidden, 1)
        self.adversary = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x, weight):
        h = self.encoder(x)
        return self.score(h).squeeze(-1), self.adversary(Reverse.apply(h, weight)).squeeze(-1)


def applicants(count):
    group = (torch.rand(count) < 0.5).float()
    skill = torch.randn(count)
    x = torch.stack([skill, skill + 0.5 * torch.randn(count), group + 0.5 * torch.randn(count), torch.randn(count)], 1)
    return x, (skill + 0.3 * group > 0.15).float(), group


def main():
    torch.manual_seed(0)
    x, outcome, group = applicants(256)
    model = ScoringModel(4, 24)
    optimizer = torch.optim.SGD(
        [
            {"params": [*model.encoder.parameters(), *model.score.parameters()]},
            {"params": model.adversary.parameters(), "lr": 0.2},
        ],
        lr=0.1,
        momentum=0.9,
    )
    for epoch in range(6):
        weight = 0.1 * epoch
        for idx in torch.randperm(len(x)).split(64):
            score, guess = model(x[idx], weight)
            task = F.binary_cross_entropy_with_logits(score, outcome[idx])
            adversary = F.binary_cross_entropy_with_logits(guess, group[idx])
            optimizer.zero_grad()
            (task + adversary).backward()
            optimizer.step()
        print(f"epoch {epoch} task {task.item():.4f} adversary {adversary.item():.4f}")


if __name__ == "__main__":
    main()
