"""Low-communication training of a character model, simulated: workers take many local steps between two exchanges.

Every round the workers start from the shared weights and run their own AdamW; the server treats the mean way that they
went as a gradient and takes one Nesterov step with it (as in DiLoCo).
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

VOCAB, CONTEXT, WORKERS, ROUNDS, LOCAL_STEPS = 24, 24, 4, 8, 8


def markov_corpus(length, sharpness, generator, table):
    probs = (sharpness * table).softmax(-1)
    uniform = torch.rand(length, generator=generator)
    cumulative = probs.cumsum(-1)
    text = torch.zeros(length, dtype=torch.long)
    state = 0
    for t in range(length):
        state = min(int((cumulative[state] < uniform[t]).sum()), VOCAB - 1)
        text[t] = state
    return text


class CharModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(VOCAB))

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return hidden @ self.embed.weight.T + self.bias


def batch(text, size=24):
    starts = torch.randint(0, len(text) - CONTEXT - 1, (size,))
    window = text[starts.unsqueeze(1) + torch.arange(CONTEXT + 1)]
    return window[:, :-1], window[:, 1:]


def loss_of(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


class Worker:
    def __init__(self, shared, text):
        self.model = copy.deepcopy(shared)
        self.text = text
        # The moments stay with the worker over the rounds; only weights travel.
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=4e-3, weight_decay=0.01)

    def run(self, shared):
        self.model.load_state_dict(shared.state_dict())
        self.model.train()
        for _ in range(LOCAL_STEPS):
            loss = loss_of(self.model, *batch(self.text))
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
        return loss.item()


def exchange(shared, workers, outer):
    for i, target in enumerate(shared.parameters()):
        arrived = torch.stack([list(w.model.parameters())[i].detach() for w in workers])
        target.grad = target.detach() - arrived.mean(0)
    outer.step()
    outer.zero_grad()


@torch.no_grad()
def held_out(model, text):
    model.eval()
    windows = text[: (len(text) - 1) // CONTEXT * CONTEXT + 1]
    inputs = windows[:-1].view(-1, CONTEXT)
    targets = windows[1:].view(-1, CONTEXT)
    return loss_of(model, inputs, targets).item()


def main():
    g = torch.Generator().manual_seed(8)
    table = torch.randn(VOCAB, VOCAB, generator=g)
    shards = [markov_corpus(2500, 1.8 + 0.2 * k, g, table) for k in range(WORKERS)]
    test = markov_corpus(2500, 2.1, g, table)
    shared = CharModel()
    workers = [Worker(shared, shard) for shard in shards]
    outer = torch.optim.SGD(shared.parameters(), lr=0.7, momentum=0.6, nesterov=True)
    print(f"start: held-out loss {held_out(shared, test):.4f}")
    for round_ in range(ROUNDS):
        losses = [worker.run(shared) for worker in workers]
        exchange(shared, workers, outer)
        print(f"round {round_}  workers {sum(losses) / WORKERS:.4f}  shared, held out {held_out(shared, test):.4f}")
    return shared


if __name__ == "__main__":
    main()
