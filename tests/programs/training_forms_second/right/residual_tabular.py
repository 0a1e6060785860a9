import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(12)

WIDTH = 48


class ResidualBlock(nn.Module):
    def __init__(self, width, expand=2, drop=0.1, norm=nn.LayerNorm):
        super().__init__()
        self.norm = norm(width)
        self.up = nn.Linear(width, expand * width)
        self.down = nn.Linear(expand * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        return x + self.down(self.drop(F.gelu(self.up(self.norm(x)))))


class FraudNet(nn.Module):
    def __init__(self, numeric, categories, depth=4):
        super().__init__()
        self.numeric = nn.Linear(numeric, WIDTH)
        self.embed = nn.ModuleList([nn.Embedding(c, WIDTH) for c in categories])
        self.blocks = nn.Sequential(*[ResidualBlock(WIDTH) for _ in range(depth)])
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, num, cat):
        h = self.numeric(num)
        for j, table in enumerate(self.embed):
            h = h + table(cat[:, j])
        return self.out(self.blocks(h)).squeeze(-1)


def payments(rows=600, numeric=6, categories=(10, 7)):
    num = torch.randn(rows, numeric)
    cat = torch.stack([torch.randint(c, (rows,)) for c in categories], 1)
    risk = torch.randn(categories[0])[cat[:, 0]] + num[:, 0] * num[:, 1]
    return num, cat, (risk + 0.5 * torch.randn(rows) > 0.5).float()


def train(model, num, cat, y, epochs=8, size=50):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    for epoch in range(epochs):
        for i in torch.randperm(len(y)).split(size):
            loss = F.binary_cross_entropy_with_logits(model(num[i], cat[i]), y[i])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")


num, cat, y = payments()
model = FraudNet(num.size(1), (10, 7))
train(model, num, cat, y)
model.eval()
with torch.no_grad():
    print("accuracy", ((model(num, cat) > 0).float() == y).float().mean().item())
    print("parameters", sum(p.numel() for p in model.parameters()))
