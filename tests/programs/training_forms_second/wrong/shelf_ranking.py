import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(23)


class Scorer(nn.Module):
    def __init__(self, users=50, features=12, dim=16):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Linear(features, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, user, items):
        u = self.user(user).unsqueeze(1).expand(-1, items.size(1), -1)
        return self.mlp(torch.cat([u, self.item(items)], dim=-1))


def list_likelihood(scores, order):
    ranked = scores[torch.arange(len(scores))[:, None], order]
    remaining = torch.logcumsumexp(ranked.flip(1), dim=-1).flip(1)
    return (remaining - ranked).sum(1).mean()


def click_loss(scores, clicks):
    return F.binary_cross_entropy_with_logits(scores.squeeze(-1), clicks)


def sessions(count=400, shelf=8, users=50, features=12):
    user = torch.randint(users, (count,))
    taste = torch.randn(users, features)
    items = torch.randn(count, shelf, features)
    utility = (items * taste[user][:, None]).sum(-1) / 3 + 0.2 * torch.randn(count, shelf)
    order = utility.argsort(dim=1, descending=True)
    clicks = (torch.rand(count, shelf) < torch.sigmoid(2 * utility - 2)).float()
    return user, items, order, clicks


user, items, order, clicks = sessions()
model = Scorer()
opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
for epoch in range(15):
    for i in torch.randperm(len(user)).split(50):
        scores = model(user[i], items[i])
        loss = 0.5 * list_likelihood(scores, order[i]) + click_loss(scores, clicks[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")

with torch.no_grad():
    top = model(user, items).squeeze(-1).argmax(1)
    print("top-1 agreement", (top == order[:, 0]).float().mean().item())
