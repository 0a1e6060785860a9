import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


class Keywords(nn.Module):
    def __init__(self, mels=13, hidden=32, words=5):
        super().__init__()
        self.norm = nn.LayerNorm(mels)
        self.rnn = nn.LSTM(mels, hidden)
        self.out = nn.Linear(hidden, words)

    def forward(self, frames, lengths):
        states, _ = self.rnn(self.norm(frames))
        summary = states[lengths - 1, torch.arange(states.size(1))]
        return self.out(summary)


class Clips(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        gen = torch.Generator().manual_seed(seed)
        shapes = torch.randn(5, 13, generator=torch.Generator().manual_seed(99))
        self.items = []
        for _ in range(n):
            word = int(torch.randint(5, (1,), generator=gen))
            frames = int(torch.randint(8, 45, (1,), generator=gen))
            envelope = torch.linspace(0, 1, frames)[:, None]
            clip = torch.randn(frames, 13, generator=gen) + 1.1 * envelope * shapes[word]
            self.items.append((clip, word))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    clips, words = zip(*items)
    return pad_sequence(clips), torch.tensor([len(c) for c in clips]), torch.tensor(words)


def main():
    torch.manual_seed(61)
    loader = torch.utils.data.DataLoader(Clips(320, 1), batch_size=32, shuffle=True, collate_fn=collate)
    test = torch.utils.data.DataLoader(Clips(200, 2), batch_size=50, collate_fn=collate)
    net = Keywords()
    opt = torch.optim.NAdam(net.parameters(), lr=4e-3)
    for epoch in range(5):
        for frames, lengths, words in loader:
            loss = nn.functional.cross_entropy(net(frames, lengths), words)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 2.0)
            opt.step()
        with torch.no_grad():
            hits = sum((net(f, n).argmax(1) == w).sum().item() for f, n, w in test)
        print(f"epoch {epoch}  loss {loss.item():.4f}  accuracy {hits / 200:.3f}")


if __name__ == "__main__":
    main()
