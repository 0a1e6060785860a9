import torch
from torch import nn

CORPUS = "the quick brown fox jumps over the lazy dog while the five boxing wizards jump quickly " * 12
CONFIG = {"hidden": 48, "embed": 16, "seq_len": 24, "batch": 16, "steps": 40, "lr": 0.5, "max_norm": 0.1}


class CharModel(nn.Module):
    def __init__(self, vocab, embed, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, embed)
        self.rnn = nn.GRU(embed, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, ids):
        states, _ = self.rnn(self.embed(ids))
        return self.out(states)


def make_batches(config, generator):
    letters = sorted(set(CORPUS))
    data = torch.tensor([letters.index(c) for c in CORPUS])
    span = config["seq_len"]

    def sample():
        starts = torch.randint(0, len(data) - span - 1, (config["batch"],), generator=generator)
        window = torch.stack([data[s : s + span + 1] for s in starts])
        return window[:, :-1], window[:, 1:]

    return sample, len(letters)


def train(config):
    torch.manual_seed(1)
    sample, vocab = make_batches(config, torch.Generator().manual_seed(2))
    model = CharModel(vocab, config["embed"], config["hidden"])
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for step in range(config["steps"]):
        inputs, targets = sample()
        optimizer.zero_grad()
        logits = model(inputs)
        loss = criterion(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        if step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")
    return model


if __name__ == "__main__":
    model = train(CONFIG)
