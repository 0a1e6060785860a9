import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(27)

n_samples, n_genes = 400, 50
true_weight = torch.zeros(n_genes)
true_weight[:5] = torch.tensor([1.5, -2.0, 1.0, 0.8, -1.2])
expression = torch.randn(n_samples, n_genes)
phenotype = expression @ true_weight + 0.5 * torch.randn(n_samples)

train_ds = TensorDataset(expression[:300], phenotype[:300])
val_x, val_y = expression[300:], phenotype[300:]
train_dl = DataLoader(train_ds, batch_size=30, shuffle=True)


class GeneModel(nn.Module):
    def __init__(self, n_in, n_hidden=16):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(n_hidden, 1)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x))).squeeze(-1)


def l1_norm(params):
    return sum(p.abs().sum() for p in params)


def train(model, epochs=30, lr=5e-3, l1_lambda=2e-3):
    params = list(model.parameters())
    optimizer = torch.optim.Adam(params, lr=lr)
    loss_fn = nn.MSELoss()
    for epoch in range(epochs):
        model.train()
        running_loss = 0.0
        for xb, yb in train_dl:
            optimizer.zero_grad()
            mse = loss_fn(model(xb), yb)
            loss = mse + l1_lambda * l1_norm(params)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        if epoch % 6 == 5:
            model.eval()
            with torch.no_grad():
                val_mse = loss_fn(model(val_x), val_y)
            print(f"epoch {epoch + 1} train loss {running_loss / len(train_dl):.4f} val mse {val_mse:.4f}")


model = GeneModel(n_genes)
train(model)
small = (model.fc1.weight.abs() < 1e-2).float().mean()
print(f"share of near-zero input weights {small:.3f}")
