"""Fine-tune a small pretrained encoder with a lower rate than its new head."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 5, stride=2, padding=2)
        self.conv2 = nn.Conv1d(8, 16, 5, stride=2, padding=2)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return x.mean(dim=2)


class Classifier(nn.Module):
    def __init__(self, encoder, n_classes):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(16, n_classes)

    @torch.inference_mode()
    def extract(self, x):
        return self.encoder(x)

    def forward(self, x):
        feats = self.extract(x).clone()
        return self.head(feats)


def signals(n, freqs):
    y = torch.randint(len(freqs), (n,))
    t = torch.linspace(0, 1, 64)
    f = torch.tensor(freqs)[y].unsqueeze(1)
    x = torch.sin(2 * torch.pi * f * (t + torch.rand(n, 1))) + 0.3 * torch.randn(n, 64)
    return x.unsqueeze(1), y


def pretrain(encoder):
    x, _ = signals(256, [2.0, 4.0, 7.0])
    target = x.squeeze(1)
    decoder = nn.Linear(16, 64)
    opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
    for _ in range(15):
        for idx in torch.randperm(256).split(64):
            loss = F.mse_loss(decoder(encoder(x[idx])), target[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


def main():
    torch.manual_seed(21)
    encoder = Encoder()
    pretrain(encoder)
    model = Classifier(encoder, 4)
    x, y = signals(512, [3.0, 5.0, 8.0, 11.0])
    x_val, y_val = signals(128, [3.0, 5.0, 8.0, 11.0])
    optimizer = torch.optim.Adam(
        [
            {"params": model.encoder.parameters(), "lr": 1e-3},
            {"params": model.head.parameters(), "lr": 1e-2},
        ]
    )
    for epoch in range(8):
        for idx in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean()
        print(f"epoch {epoch}: loss {loss.item():.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
