import math

import torch
from torch import Tensor, nn

torch.manual_seed(47)


class Unit(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Parameter(torch.randn(width, 2, width) / math.sqrt(width))
        self.bias = nn.Parameter(torch.zeros(2, width))

    def forward(self, h: Tensor) -> Tensor:
        both = torch.tensordot(self.norm(h), self.wide, dims=1) + self.bias
        value, gate = both.unbind(dim=1)
        return h + value * torch.sigmoid(gate)


class Tabular(nn.Module):
    def __init__(self, numeric: int, levels: list[int], width: int = 16, depth: int = 2):
        super().__init__()
        self.numeric = nn.Linear(numeric, width)
        self.levels = nn.ModuleList(nn.Embedding(n, width) for n in levels)
        self.units = nn.ModuleList(Unit(width) for _ in range(depth))
        self.last = nn.Linear(width, 1)

    def forward(self, row: dict[str, Tensor]) -> Tensor:
        h = self.numeric(row["numeric"])
        for table, column in zip(self.levels, row["levels"].unbind(1)):
            h = h + table(column)
        for unit in self.units:
            h = unit(h)
        return self.last(h).squeeze(-1)


def houses(n: int) -> tuple[dict[str, Tensor], Tensor]:
    numeric = torch.randn(n, 4)
    levels = torch.stack([torch.randint(0, 5, (n,)), torch.randint(0, 3, (n,))], dim=1)
    price = numeric[:, 0] * (levels[:, 1] - 1) + 0.5 * numeric[:, 1].abs() + 0.2 * levels[:, 0]
    return {"numeric": numeric, "levels": levels}, price + 0.1 * torch.randn(n)


table, price = houses(600)
test, test_price = houses(300)
model = Tabular(4, [5, 3])
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.0)
for epoch in range(10):
    for rows in torch.randperm(600).split(60):
        batch = {name: column[rows] for name, column in table.items()}
        loss = nn.functional.mse_loss(model(batch), price[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        print(f"epoch {epoch}: {loss.item():.4f}")

with torch.no_grad():
    print(f"test error {nn.functional.mse_loss(model(test), test_price).item():.4f}")
