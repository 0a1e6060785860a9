import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

np.random.seed(4)
torch.manual_seed(4)

N_CLASSES = 4


class MachineFaults(Dataset):
    def __init__(self, n, probs=(0.8, 0.12, 0.05, 0.03)):
        centers = np.random.RandomState(0).randn(N_CLASSES, 10)
        self.labels = np.random.choice(N_CLASSES, size=n, p=probs)
        self.features = (centers[self.labels] + 1.2 * np.random.randn(n, 10)).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.features[i], self.labels[i]


def compute_class_weights(labels):
    weights = []
    for c in range(N_CLASSES):
        n_c = np.sum(labels == c)
        weights.append(len(labels) / (N_CLASSES * n_c))
    return torch.tensor(weights, dtype=torch.float32)


def recall_per_class(model, dataset):
    model.eval()
    with torch.no_grad():
        pred = model(torch.from_numpy(dataset.features)).argmax(dim=1).numpy()
    model.train()
    return [float((pred[dataset.labels == c] == c).mean()) for c in range(N_CLASSES)]


train_set, test_set = MachineFaults(1500), MachineFaults(600)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, N_CLASSES)
)
class_weights = compute_class_weights(train_set.labels)
criterion = nn.CrossEntropyLoss(weight=class_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(10):
    total_loss = 0.0
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    if epoch % 3 == 0:
        print(f"Epoch {epoch}: loss {total_loss / len(train_loader):.4f}")

recalls = recall_per_class(model, test_set)
print("recall:", ", ".join(f"{r:.2f}" for r in recalls), f"macro {np.mean(recalls):.3f}")
