"""LambdaRank (Burges et al., 2006): a net scores the documents of a query, trained on NDCG-weighted pair gradients."""
import torch
import torch.nn as nn

N_FEATURES = 12
DOCS = 15
SIGMA = 1.0
EPOCHS = 12
QUERIES_PER_BATCH = 16


def make_queries(n, generator):
    """Grades 0..3 from a hidden non-linear relevance of the document's features."""
    features = torch.randn(n, DOCS, N_FEATURES, generator=generator)
    hidden = features[..., 0] + features[..., 1] * features[..., 2] + 0.7 * features[..., 3].abs()
    hidden = hidden + 0.3 * torch.randn(n, DOCS, generator=generator)
    edges = torch.tensor([0.2, 1.2, 2.2])
    return features, torch.bucketize(hidden, edges)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(N_FEATURES, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1, bias=False)
        )

    def forward(self, features):
        return self.net(features).squeeze(-1)


def discounts(n):
    return 1.0 / torch.log2(torch.arange(n) + 2.0)


def ideal_dcg(gain):
    return (gain.sort(dim=-1, descending=True).values * discounts(gain.shape[-1])).sum(-1).clamp(min=1e-6)


@torch.no_grad()
def ndcg(scores, grades):
    gain = 2.0 ** grades - 1
    ordered = gain.gather(-1, scores.argsort(dim=-1, descending=True))
    value = (ordered * discounts(scores.shape[-1])).sum(-1) / ideal_dcg(gain)
    return value[(grades > 0).any(-1)].mean().item()


@torch.no_grad()
def lambdas(scores, grades):
    """dL/ds of the pair losses log(1 + exp(-sigma (s_i - s_j))), each times the |change of NDCG| of swapping i and j."""
    gain = 2.0 ** grades - 1
    rank = scores.argsort(dim=-1, descending=True).argsort(dim=-1)
    discount = discounts(scores.shape[-1])[rank]
    swap = (gain.unsqueeze(-1) - gain.unsqueeze(-2)) * (discount.unsqueeze(-1) - discount.unsqueeze(-2))
    weight = swap.abs() / ideal_dcg(gain)[:, None, None]
    better = grades.unsqueeze(-1) > grades.unsqueeze(-2)
    gap = scores.unsqueeze(-1) - scores.unsqueeze(-2)
    pair = -SIGMA * torch.sigmoid(-SIGMA * gap) * weight * better
    return pair.sum(-1) - pair.sum(-2)


def train_epoch(model, optimizer, features, grades, generator):
    for queries in torch.randperm(len(features), generator=generator).split(QUERIES_PER_BATCH):
        scores = model(features[queries])
        optimizer.zero_grad()
        scores.backward(lambdas(scores, grades[queries]) / len(queries))
        optimizer.step()


@torch.no_grad()
def evaluate(model, features, grades):
    model.eval()
    value = ndcg(model(features), grades)
    model.train()
    return value


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(19)
    features, grades = make_queries(400, generator)
    test_features, test_grades = make_queries(150, generator)
    model = Scorer()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    print(f"start     ndcg {evaluate(model, test_features, test_grades):.4f}")
    for epoch in range(1, EPOCHS + 1):
        train_epoch(model, optimizer, features, grades, generator)
        if epoch % 3 == 0:
            print(f"epoch {epoch:3d} ndcg {evaluate(model, test_features, test_grades):.4f}")
    return model, evaluate(model, test_features, test_grades)


if __name__ == "__main__":
    model, test_ndcg = main()
