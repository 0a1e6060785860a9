"""Attention decoder that tracks how much of the source it has read."""
import torch
import torch.nn as nn


class Reader(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.enc = nn.Linear(dim, dim, bias=False)
        self.dec = nn.Linear(dim, dim)
        self.cov = nn.Linear(1, dim, bias=False)
        self.score = nn.Linear(dim, 1, bias=False)

    def forward(self, memory, state, coverage):
        history = self.cov(coverage.unsqueeze(-1))
        energy = torch.tanh(self.enc(memory) + self.dec(state).unsqueeze(1) + history)
        attention = torch.softmax(self.score(energy).squeeze(-1), dim=-1)
        context = (attention.unsqueeze(-1) * memory).sum(1)
        return context, attention


class Decoder(nn.Module):
    def __init__(self, vocab=20, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.reader = Reader(dim)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, memory, tokens):
        state = memory.mean(1)
        coverage = memory.new_zeros(memory.shape[:2])
        logits = []
        for t in range(tokens.size(1)):
            context, attention = self.reader(memory, state, coverage)
            state = self.cell(torch.cat([self.embed(tokens[:, t]), context], -1), state)
            coverage = coverage + attention
            logits.append(self.out(state))
        return torch.stack(logits, 1)


def main():
    torch.manual_seed(9)
    encoder, decoder = nn.Linear(6, 12), Decoder()
    params = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adagrad(params, lr=0.15, initial_accumulator_value=0.1)
    loss_fn = nn.CrossEntropyLoss()
    for step in range(2):
        source, target = torch.randn(3, 7, 6), torch.randint(0, 20, (3, 5))
        logits = decoder(encoder(source), target[:, :-1])
        loss = loss_fn(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 2.0)
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
