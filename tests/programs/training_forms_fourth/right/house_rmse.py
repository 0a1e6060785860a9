import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
np.random.seed(9)


def make_houses(n):
    area = np.random.uniform(40, 200, n)
    rooms = np.random.randint(1, 7, n)
    age = np.random.uniform(0, 80, n)
    price = 2.0 * area + 15 * rooms - 0.8 * age + 10 * np.random.randn(n)
    X = np.stack([area / 100, rooms / 5, age / 50], axis=1).astype(np.float32)
    return X, (price / 100).astype(np.float32)


class PriceModel(nn.Module):
    def __init__(self, in_features, hidden=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x)


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb.unsqueeze(1))
        loss.backward()
        optimizer.step()
        total += loss.item() * xb.size(0)
    return total / len(loader.dataset)


def evaluate(model, X, y):
    model.eval()
    with torch.no_grad():
        predictions = model(torch.from_numpy(X)).squeeze(1).numpy()
    errors = predictions - y
    rmse = np.sqrt(np.mean(errors ** 2))
    mae = np.mean(np.abs(errors))
    return rmse, mae


X_train, y_train = make_houses(800)
X_test, y_test = make_houses(200)
loader = DataLoader(
    TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train)), batch_size=32, shuffle=True
)
model = PriceModel(X_train.shape[1])
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(1, 16):
    train_loss = train_one_epoch(model, loader, criterion, optimizer)
    if epoch % 3 == 0:
        rmse, mae = evaluate(model, X_test, y_test)
        print(f"Epoch {epoch}: train MSE {train_loss:.4f}, test RMSE {rmse:.4f}, test MAE {mae:.4f}")
