"""Character model trained on consecutive windows of a long text."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CharModel(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, chars, state):
        x = self.embed(chars)
        out, state = self.rnn(x, state)
        return self.head(out), state

    def initial_state(self, batch):
        return torch.zeros(1, batch, self.rnn.hidden_size)


def windows(text, size):
    for start in range(0, text.size(1) - size, size):
        yield text[:, start:start + size], text[:, start + 1:start + size + 1]


def train(model, text, size=8, lr=0.01):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    state = model.initial_state(text.size(0))
    for inputs, targets in windows(text, size):
        optimizer.zero_grad()
        logits, state = model(inputs, state.detach())
        loss = F.cross_entropy(logits.transpose(1, 2), targets)
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4))


if __name__ == "__main__":
    torch.manual_seed(12)
    train(CharModel(vocab=18), torch.randint(0, 18, (4, 50)))
