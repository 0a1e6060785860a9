import io
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)


class Autoencoder(nn.Module):
    def __init__(self, dim=24, code=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 16), nn.Tanh(), nn.Linear(16, code))
        self.decoder = nn.Sequential(nn.Linear(code, 16), nn.Tanh(), nn.Linear(16, dim))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Trainer:
    def __init__(self, model, loader, lr=5e-3):
        self.model = model
        self.loader = loader
        self.lr = lr
        self.start_epoch = 0
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)

    def save(self, epoch, file):
        torch.save({
            "epoch": epoch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }, file)

    def resume(self, file):
        checkpoint = torch.load(file)
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.start_epoch = checkpoint["epoch"]

    def fit(self, epochs):
        self.model.train()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        for epoch in range(self.start_epoch, epochs):
            total = 0.0
            for (x,) in self.loader:
                self.optimizer.zero_grad()
                loss = F.mse_loss(self.model(x), x)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            if epoch % 2 == 1 or epoch == self.start_epoch:
                print(f"epoch {epoch + 1}: reconstruction loss {total / len(self.loader):.6f}")


basis = torch.randn(4, 24)
measurements = torch.randn(640, 4) @ basis + 0.05 * torch.randn(640, 24)
loader = DataLoader(TensorDataset(measurements), batch_size=32, shuffle=True)

trainer = Trainer(Autoencoder(), loader)
trainer.fit(6)
checkpoint_file = io.BytesIO()
trainer.save(6, checkpoint_file)
checkpoint_file.seek(0)

print("resuming from checkpoint")
resumed = Trainer(Autoencoder(), loader)
resumed.resume(checkpoint_file)
resumed.fit(12)
with torch.no_grad():
    print(f"final error {F.mse_loss(resumed.model(measurements), measurements).item():.6f}")
