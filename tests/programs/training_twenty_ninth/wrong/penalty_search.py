"""Bilevel search for the ridge penalties of groups of features.

The lower level fits weights on the training set with one penalty for each group; the upper level moves the logarithms
of the penalties so that the weights after one more look-ahead step do well on the validation set.
"""
import torch
from torch import nn

GROUPS = (6, 30, 30)


class GroupedRidge(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(sum(groups)))
        self.register_buffer("group_of", torch.repeat_interleave(torch.arange(len(groups)), torch.tensor(groups)))

    def predict(self, features, weight=None):
        return features @ (self.weight if weight is None else weight)

    def penalty(self, log_penalties, weight=None):
        weight = self.weight if weight is None else weight
        return (log_penalties.exp()[self.group_of] * weight.pow(2)).sum()


def make_data(count, true_weight, noise, generator):
    features = torch.randn(count, len(true_weight), generator=generator)
    targets = features @ true_weight + noise * torch.randn(count, generator=generator)
    return features, targets


def squared_error(prediction, targets):
    return (prediction - targets).pow(2).mean()


class PenaltySearch:
    def __init__(self, model, train, valid, inner_lr, outer_lr, inner_steps):
        self.model = model
        self.train, self.valid = train, valid
        self.inner_lr, self.inner_steps = inner_lr, inner_steps
        self.log_penalties = torch.full((len(GROUPS),), -2.5, requires_grad=True)
        self.inner = torch.optim.SGD(model.parameters(), lr=inner_lr)
        self.outer = torch.optim.Adam([self.log_penalties], lr=outer_lr)

    def training_objective(self):
        features, targets = self.train
        error = squared_error(self.model.predict(features), targets)
        return error + self.model.penalty(self.log_penalties)

    def upper_step(self):
        objective = self.training_objective()
        (slope,) = torch.autograd.grad(objective, self.model.weight, create_graph=True)
        ahead = self.model.weight - self.inner_lr * slope
        features, targets = self.valid
        valid_error = squared_error(self.model.predict(features, ahead), targets)
        valid_error.backward()
        self.outer.step()
        self.outer.zero_grad()
        return valid_error.item()

    def lower_steps(self):
        for _ in range(self.inner_steps):
            self.inner.zero_grad()
            objective = self.training_objective()
            objective.backward()
            self.inner.step()
        return objective.item()

    def run(self, rounds):
        history = []
        for index in range(rounds):
            objective = self.lower_steps()
            valid_error = self.upper_step()
            history.append(valid_error)
            if index % 40 == 0:
                values = " ".join(f"{v:.3f}" for v in self.log_penalties.detach().exp().tolist())
                print(f"round {index:3d}  objective {objective:.4f}  validation {valid_error:.4f}  penalties {values}")
        return history


def main():
    torch.manual_seed(21)
    generator = torch.Generator().manual_seed(8)
    true_weight = torch.zeros(sum(GROUPS))
    true_weight[: GROUPS[0]] = torch.randn(GROUPS[0], generator=generator)
    true_weight[GROUPS[0] : GROUPS[0] + GROUPS[1]] = 0.05 * torch.randn(GROUPS[1], generator=generator)
    train = make_data(80, true_weight, 1.0, generator)
    valid = make_data(300, true_weight, 1.0, generator)
    test = make_data(2000, true_weight, 1.0, generator)

    model = GroupedRidge(GROUPS)
    search = PenaltySearch(model, train, valid, inner_lr=0.05, outer_lr=0.03, inner_steps=5)
    history = search.run(rounds=200)
    with torch.no_grad():
        test_error = squared_error(model.predict(test[0]), test[1]).item()
    values = " ".join(f"{v:.3f}" for v in search.log_penalties.detach().exp().tolist())
    print(f"penalties {values}")
    print(f"validation error {history[-1]:.4f}, test error {test_error:.4f}")
    return search, history, test_error


if __name__ == "__main__":
    search, history, test_error = main()
