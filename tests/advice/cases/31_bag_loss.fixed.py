"""Multiple-instance learning on bags of vectors."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class InstanceScorer(nn.Module):
    def __init__(self, n_in=6):
        super().__init__()
        self.hidden = nn.Linear(n_in, 16)
        self.score = nn.Linear(16, 1)

    def forward(self, bag):
        return self.score(torch.tanh(self.hidden(bag))).squeeze(-1)


def bag_losses(model, bags, labels):
    losses = []
    for bag, label in zip(bags, labels):
        scores = model(bag)
        top = scores.topk(2).values.mean()
        term = F.binary_cross_entropy_with_logits(top, label)
        losses.append(term)
    return losses


def train(model, bags, labels, rounds=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(rounds):
        per_bag = bag_losses(model, bags, labels)
        loss = torch.stack(per_bag).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss)


if __name__ == "__main__":
    torch.manual_seed(30)
    bags = [torch.randn(int(n), 6) for n in torch.randint(3, 8, (5,))]
    train(InstanceScorer(), bags, torch.randint(0, 2, (5,)).float())
