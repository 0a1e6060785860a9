"""Detect the boundary in long recordings; large batches are emulated by gradient accumulation."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Recordings(torch.utils.data.Dataset):
    def __init__(self, n, length=48, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.position = torch.randint(6, length - 6, (n,), generator=g)
        steps = torch.arange(length)[None] >= self.position[:, None]
        self.signal = steps * 0.9 + 1.1 * torch.randn(n, length, generator=g)

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, i):
        return self.signal[i], self.position[i]


class BoundaryNet(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.conv1 = nn.Conv1d(1, channels, 9, padding=4)
        self.conv2 = nn.Conv1d(channels, channels, 9, padding=4)
        self.score = nn.Conv1d(channels, 1, 9, padding=4)

    def forward(self, x):
        h = F.relu(self.conv1(x[:, None]))
        h = F.relu(self.conv2(h))
        return self.score(h).squeeze(1)


class Trainer:
    def __init__(self, model, loader, lr=0.05, accumulate=8):
        self.model, self.loader, self.accumulate = model, loader, accumulate
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.updates = 0

    def micro_step(self, signal, position, last):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(signal), position)
        (loss / self.accumulate).backward()
        if last:
            self.optimizer.step()
            self.updates += 1
        return loss.item()

    def epoch(self):
        self.model.train()
        total = 0.0
        for i, (signal, position) in enumerate(self.loader):
            total += self.micro_step(signal, position, last=(i + 1) % self.accumulate == 0)
        return total / len(self.loader)

    @torch.no_grad()
    def error(self, data):
        self.model.eval()
        guess = self.model(data.signal).argmax(1)
        return (guess - data.position).abs().float().mean().item()


def main(epochs=8):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, test = Recordings(768), Recordings(400, seed=1)
    loader = torch.utils.data.DataLoader(train, batch_size=8, shuffle=True, drop_last=True)
    trainer = Trainer(BoundaryNet(), loader)
    for epoch in range(epochs):
        loss = trainer.epoch()
        print(f"epoch {epoch} loss {loss:.3f} mean distance to boundary {trainer.error(test):.2f}")
    return loss, trainer.error(test), trainer.updates


if __name__ == "__main__":
    train_loss, distance, updates = main()
    print(f"{updates} updates with an effective batch of 64; distance {distance:.2f}")
