import torch
import torch.nn.functional as F
from torch import nn


class CartModel(nn.Module):
    def __init__(self, goods, dim):
        super().__init__()
        self.tables = nn.ModuleDict({"basket": nn.Embedding(goods, dim), "candidate": nn.Embedding(goods, dim)})
        self.tables["candidate"].weight = self.tables["basket"].weight
        self.mix = nn.Linear(dim, dim, bias=False)

    def forward(self, basket):
        taste = self.mix(self.tables["basket"](basket).mean(1))
        return taste @ self.tables["candidate"].weight.T


def use_vectors(table, vectors):
    if vectors.shape != table.weight.shape:
        raise ValueError(f"expected {tuple(table.weight.shape)}")
    table.register_parameter("weight", nn.Parameter(vectors.clone()))


def build(goods, dim, vectors):
    model = CartModel(goods, dim)
    nn.init.eye_(model.mix.weight)
    use_vectors(model.tables["basket"], vectors)
    return model


def carts(n, goods, hidden):
    first = torch.randint(goods, (n, 1))
    likeness = hidden @ hidden.T
    likeness.fill_diagonal_(-1e9)
    rest = torch.multinomial((2 * likeness[first.squeeze(1)]).softmax(1), 3)
    return torch.cat([first, rest[:, :2]], 1), rest[:, 2]


def main():
    torch.manual_seed(67)
    goods, dim = 50, 8
    hidden = F.normalize(torch.randn(goods, dim), dim=1) * 1.5
    basket, bought = carts(2400, goods, hidden)
    model = build(goods, dim, hidden + 0.6 * torch.randn(goods, dim))
    optimizer = torch.optim.Adamax(model.parameters(), lr=0.01)
    print(f"{sum(p.numel() for p in model.parameters())} weights")
    for epoch in range(6):
        for rows in torch.randperm(2000).split(100):
            loss = F.cross_entropy(model(basket[rows]), bought[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            held = F.cross_entropy(model(basket[2000:]), bought[2000:])
        print(f"epoch {epoch} train {loss.item():.4f} held-out {held.item():.4f}")


if __name__ == "__main__":
    main()
