"""Hybrid recommender: closed-form alternating least squares for the factors, SGD for the content model.

The factors of known books are solved exactly (ridge regression per row). A small network learns
to map book features to these factors, so that new books without ratings can be recommended.
"""
import torch
import torch.nn as nn

torch.manual_seed(21)

N_USERS, N_BOOKS, N_NEW = 120, 150, 40
RANK, N_FEATURES = 5, 16
RIDGE = 2.0
ROUNDS = 8


def simulate():
    taste = torch.randn(N_USERS, RANK)
    content = torch.randn(N_BOOKS + N_NEW, N_FEATURES)
    mix = torch.randn(N_FEATURES, RANK) / N_FEATURES ** 0.5
    books = 1.2 * torch.tanh(content @ mix) + 0.1 * torch.randn(N_BOOKS + N_NEW, RANK)
    ratings = taste @ books.t() + 0.2 * torch.randn(N_USERS, N_BOOKS + N_NEW)
    seen = torch.rand(N_USERS, N_BOOKS + N_NEW) < 0.25
    seen[:, N_BOOKS:] = False
    return content, ratings, seen


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Parameter(0.1 * torch.randn(N_USERS, RANK), requires_grad=False)
        self.books = nn.Parameter(0.1 * torch.randn(N_BOOKS, RANK), requires_grad=False)

    def forward(self):
        return self.users @ self.books.t()


def solve_rows(fixed, ratings, seen, prior=None):
    """Ridge solution of every row against the fixed side; `prior` is what it is drawn to."""
    weights = seen.float()
    gram = torch.einsum("rc,ck,cl->rkl", weights, fixed, fixed) + RIDGE * torch.eye(RANK)
    right = (weights * ratings) @ fixed
    if prior is not None:
        right = right + RIDGE * prior
    return torch.linalg.solve(gram, right.unsqueeze(-1)).squeeze(-1)


content, ratings, seen = simulate()
known, new = content[:N_BOOKS], content[N_BOOKS:]
known_ratings, known_seen = ratings[:, :N_BOOKS], seen[:, :N_BOOKS]

factors = Factors()
tower = nn.Sequential(nn.Linear(N_FEATURES, 32), nn.Tanh(), nn.Linear(32, RANK))
optimizer = torch.optim.AdamW(tower.parameters(), lr=5e-3, weight_decay=1e-2)

for round_no in range(ROUNDS):
    # factors: exact, no gradients involved
    with torch.no_grad():
        prior = tower(known) if round_no > 0 else None
        factors.users.copy_(solve_rows(factors.books, known_ratings, known_seen))
        factors.books.copy_(solve_rows(factors.users, known_ratings.t(), known_seen.t(), prior))

    # content tower: regression on the factors, then directly on the ratings
    for _ in range(80):
        predicted = tower(known)
        fit = (predicted - factors.books).pow(2).mean()
        scores = factors.users @ predicted.t()
        rating_loss = (scores - known_ratings)[known_seen].pow(2).mean()
        loss = fit + 0.1 * rating_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    with torch.no_grad():
        residual = (factors() - known_ratings)[~known_seen].pow(2).mean().sqrt().item()
        cold = (factors.users @ tower(new).t() - ratings[:, N_BOOKS:]).pow(2).mean().sqrt().item()
    print(f"round {round_no}: tower loss {loss.item():.4f}  rmse unseen {residual:.3f}  rmse new books {cold:.3f}")

print(f"rmse of a constant prediction on new books: {ratings[:, N_BOOKS:].std().item():.3f}")
