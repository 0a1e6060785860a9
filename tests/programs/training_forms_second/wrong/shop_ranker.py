import torch
import torch.nn.functional as F
from torch import nn


class UtilityModel(nn.Module):
    """Multinomial choice with a user taste vector and price sensitivities per segment."""

    def __init__(self, users, items, segments=4, dim=8):
        super().__init__()
        self.taste = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.raw = nn.Parameter(torch.zeros(segments))
        nn.init.normal_(self.taste.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, user, segment, slate, price):
        price_weight = F.softplus(self.raw)[segment].unsqueeze(1)
        sensitivity = self.raw[segment].unsqueeze(1)
        match = torch.einsum("bd,bkd->bk", self.taste(user), self.item(slate))
        return match - sensitivity * price


def simulate(n, users=60, items=40, k=5):
    user = torch.randint(0, users, (n,))
    segment = user % 4
    slate = torch.stack([torch.randperm(items)[:k] for _ in range(n)])
    price = torch.rand(n, k) * 2
    strength = torch.tensor([0.05, 0.3, 1.0, 2.0])[segment].unsqueeze(1)
    quality = torch.sin(slate.float())
    noise = -torch.log(-torch.log(torch.rand(n, k)))
    choice = (quality - strength * price + noise).argmax(1)
    return user, segment, slate, price, choice


def main():
    torch.manual_seed(8)
    data = simulate(1500)
    model = UtilityModel(60, 40)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.08)
    for epoch in range(8):
        order = torch.randperm(1500)
        total = 0.0
        for part in order.split(100):
            user, segment, slate, price, choice = (t[part] for t in data)
            loss = F.cross_entropy(model(user, segment, slate, price), choice)
            model.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(part)
        print(f"epoch {epoch} nll {total / 1500:.4f}")
    print("segments", [round(v, 3) for v in model.raw.tolist()])


main()
