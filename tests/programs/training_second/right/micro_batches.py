import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Config:
    micro_batch = 8
    accumulate = 4
    epochs = 4
    lr = 5e-3
    max_norm = 1.0


class PriceNet(nn.Module):
    def __init__(self, districts, numbers):
        super().__init__()
        self.district = nn.Embedding(districts, 6)
        self.norm = nn.LayerNorm(numbers)
        self.body = nn.Sequential(nn.Linear(6 + numbers, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, district, numbers):
        features = torch.cat([self.district(district), self.norm(numbers)], dim=1)
        return self.body(features).squeeze(1)


def listings(n):
    district = torch.randint(0, 9, (n,))
    numbers = torch.randn(n, 4)
    scaled = (numbers - numbers.mean(1, keepdim=True)) / numbers.std(1, keepdim=True)
    price = 0.2 * district + scaled[:, 0] - 0.5 * scaled[:, 1] * (district % 2)
    return TensorDataset(district, numbers, price + 0.05 * torch.randn(n))


def train(model, loader, cfg):
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        running = 0.0
        optimizer.zero_grad()
        for i, (district, numbers, price) in enumerate(loader, start=1):
            loss = nn.functional.mse_loss(model(district, numbers), price)
            (loss / cfg.accumulate).backward()
            running += loss.item()
            if i % cfg.accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), cfg.max_norm)
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} loss {running / len(loader):.4f}")


def main():
    torch.manual_seed(101)
    cfg = Config()
    loader = DataLoader(listings(384), cfg.micro_batch, shuffle=True)
    model = PriceNet(9, 4)
    train(model, loader, cfg)
    district, numbers, price = listings(200).tensors
    with torch.no_grad():
        error = nn.functional.l1_loss(model(district, numbers), price)
    print(f"test error {error:.4f}")


main()
