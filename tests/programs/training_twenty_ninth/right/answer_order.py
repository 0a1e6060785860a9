"""LambdaRank (Burges 2010) for ordering the answers to a question: the lambdas are written out and fed to the network."""
import torch
import torch.nn as nn

FEATURES = 16
ANSWERS = 12
EPOCHS = 6
GROUP = 16


def make_questions(count, generator):
    features = torch.randn(count, ANSWERS, FEATURES, generator=generator)
    taste = torch.randn(FEATURES, generator=torch.Generator().manual_seed(3)) / 4
    quality = features @ taste + 0.5 * features[..., 0].abs() + 0.2 * torch.randn(count, ANSWERS, generator=generator)
    return features, torch.bucketize(quality, torch.tensor([0.2, 0.8, 1.5])).float()


class Scorer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.hidden = nn.Linear(FEATURES, width)
        self.second = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)

    def forward(self, features):
        h = torch.relu(self.hidden(features))
        h = h + torch.relu(self.second(h))
        return self.out(h).squeeze(-1)


@torch.no_grad()
def lambdas(scores, relevance):
    """d cost / d score: for each pair, the logistic gradient times the change of NDCG if the two swap places."""
    gain = 2 ** relevance - 1
    ranks = scores.argsort(-1, descending=True).argsort(-1).float()
    discount = 1 / torch.log2(ranks + 2)
    ideal_order = gain.sort(-1, descending=True).values
    ideal = (ideal_order / torch.log2(torch.arange(ANSWERS) + 2.0)).sum(-1).clamp(min=1e-6)
    swap = (gain[..., :, None] - gain[..., None, :]) * (discount[..., :, None] - discount[..., None, :])
    swap = swap.abs() / ideal[..., None, None]
    better = (relevance[..., :, None] > relevance[..., None, :]).float()
    push = better * swap * torch.sigmoid(scores[..., None, :] - scores[..., :, None])
    return push.sum(-2) - push.sum(-1)


@torch.no_grad()
def ndcg(scorer, features, relevance):
    order = scorer(features).argsort(-1, descending=True)
    gain = 2 ** relevance - 1
    discount = 1 / torch.log2(torch.arange(ANSWERS) + 2.0)
    reached = (gain.gather(-1, order) * discount).sum(-1)
    ideal = (gain.sort(-1, descending=True).values * discount).sum(-1)
    return (reached / ideal.clamp(min=1e-6))[ideal > 0].mean().item()


def train_epoch(scorer, optimizer, questions):
    """One question at a time; the gradients of a group of questions make one step."""
    features, relevance = questions
    force = 0.0
    optimizer.zero_grad()
    for turn, i in enumerate(torch.randperm(len(features)).tolist(), start=1):
        scores = scorer(features[i])
        push = lambdas(scores, relevance[i])
        scores.backward(gradient=push / GROUP)
        force += push.abs().sum().item()
        if turn % GROUP == 0:
            optimizer.step()
            optimizer.zero_grad()
    return force / len(features)


def main():
    torch.manual_seed(33)
    generator = torch.Generator().manual_seed(60)
    questions = make_questions(160, generator)
    held_out = make_questions(100, generator)
    scorer = Scorer()
    optimizer = torch.optim.Adam(scorer.parameters(), lr=5e-3)
    print(f"start     held-out ndcg {ndcg(scorer, *held_out):.3f}")
    for epoch in range(EPOCHS):
        force = train_epoch(scorer, optimizer, questions)
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1:2d}  mean force {force:.3f}  held-out ndcg {ndcg(scorer, *held_out):.3f}")
    return scorer, questions, held_out


if __name__ == "__main__":
    scorer, questions, held_out = main()
