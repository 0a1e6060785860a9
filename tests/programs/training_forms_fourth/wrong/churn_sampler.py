import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(14)


def make_customers(n):
    churned = (torch.rand(n) < 0.12).long()
    x = torch.randn(n, 8)
    x[:, :3] += churned[:, None] * 1.2
    return x, churned


def make_loader(x, y, batch_size=64):
    class_counts = torch.bincount(y)
    class_weights = 1.0 / class_counts.float()
    sampler = WeightedRandomSampler(
        weights=class_weights,
        num_samples=len(y),
        replacement=True,
    )
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, sampler=sampler)


class ChurnClassifier(nn.Module):
    def __init__(self, n_features=8, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_features, hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, 2),
        )

    def forward(self, x):
        return self.net(x)


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x).argmax(dim=1)
    recalls = [(pred[y == c] == c).float().mean().item() for c in (0, 1)]
    return (pred == y).float().mean().item(), sum(recalls) / 2


x_train, y_train = make_customers(1500)
x_val, y_val = make_customers(500)
train_loader = make_loader(x_train, y_train)
model = ChurnClassifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(5):
    model.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    acc, bal = validate(model, x_val, y_val)
    print(f"[{epoch + 1}] loss: {running_loss / len(train_loader):.4f} acc: {acc:.3f} balanced acc: {bal:.3f}")
