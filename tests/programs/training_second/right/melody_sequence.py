import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class MelodyNet(nn.Module):
    def __init__(self, notes, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(notes + 1, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, hidden)
        self.out = nn.Linear(hidden, notes)

    def forward(self, melody, lengths):
        packed = pack_padded_sequence(self.embed(melody), lengths, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.rnn(packed)[0])
        return self.out(states)


def melodies(n, notes, gen):
    songs = []
    for _ in range(n):
        length = int(torch.randint(6, 13, (1,), generator=gen))
        start, stride = torch.randint(0, notes, (2,), generator=gen).tolist()
        songs.append(torch.tensor([(start + stride * i) % notes + 1 for i in range(length)]))
    return songs


def collate(songs):
    lengths = torch.tensor([len(s) - 1 for s in songs])
    inputs = pad_sequence([s[:-1] for s in songs])
    targets = pad_sequence([s[1:] - 1 for s in songs], padding_value=-100)
    return inputs, targets, lengths


def main(notes=7):
    torch.manual_seed(191)
    gen = torch.Generator().manual_seed(191)
    train, test = melodies(240, notes, gen), melodies(80, notes, gen)
    model = MelodyNet(notes, 12, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        order = torch.randperm(len(train), generator=gen).tolist()
        total = 0.0
        for start in range(0, len(order), 24):
            inputs, targets, lengths = collate([train[i] for i in order[start : start + 24]])
            logits = model(inputs, lengths)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() / 10
        print(f"epoch {epoch} loss {total:.4f}")
    inputs, targets, lengths = collate(test)
    with torch.no_grad():
        guess = model(inputs, lengths).argmax(-1)
    last = lengths - 1
    columns = torch.arange(len(test))
    print(f"last note right {(guess[last, columns] == targets[last, columns]).float().mean():.3f}")


if __name__ == "__main__":
    main()
