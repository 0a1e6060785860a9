import torch
from torch import nn

torch.manual_seed(43)
COLUMNS = 7


class ColumnEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(COLUMNS, width) * 0.5)
        self.shift = nn.Parameter(torch.randn(COLUMNS, width) * 0.5)

    def forward(self, table):
        return table.unsqueeze(-1) * self.scale + self.shift


class TableModel(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.embed = ColumnEmbedding(width)
        self.mix = nn.MultiheadAttention(width, heads)
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
        self.answer = nn.Linear(width, 1)

    def forward(self, table):
        tokens = self.embed(table)
        mixed, _ = self.mix(tokens, tokens, tokens, need_weights=False)
        tokens = self.norm(tokens + mixed)
        tokens = tokens + self.feed(tokens)
        return self.answer(tokens.mean(dim=1)).flatten()


def draw(n):
    table = torch.randn(n, COLUMNS)
    bought = (table[:, 0] * table[:, 1] + table[:, 2] > 0).float()
    return table, bought


model = TableModel()
criterion = nn.BCEWithLogitsLoss()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
for it in range(150):
    table, bought = draw(40)
    loss = criterion(model(table), bought)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 49:
        print(f"{it + 1}: {loss.item():.4f}")
with torch.no_grad():
    table, bought = draw(400)
    print("hits", ((model(table) > 0) == bought.bool()).float().mean().item())
