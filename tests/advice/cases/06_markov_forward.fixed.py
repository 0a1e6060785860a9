"""Hidden Markov model trained by gradient ascent on the likelihood."""
import torch
import torch.nn as nn


class MarkovModel(nn.Module):
    def __init__(self, n_states, n_symbols):
        super().__init__()
        self.start = nn.Parameter(torch.randn(n_states))
        self.move = nn.Parameter(torch.randn(n_states, n_states))
        self.emit = nn.Parameter(torch.randn(n_states, n_symbols))

    def log_likelihood(self, seq):
        start = torch.softmax(self.start, 0)
        move = torch.softmax(self.move, 1)
        emit = torch.softmax(self.emit, 1)
        steps = seq.numel()
        belief = torch.zeros(steps, start.numel())
        joint = start * emit[:, seq[0]]
        norm = joint.sum()
        belief[0] = joint / norm
        total = norm.log()
        for t in range(1, steps):
            predicted = belief[t - 1].clone() @ move
            joint = predicted * emit[:, seq[t]]
            norm = joint.sum()
            belief[t] = joint / norm
            total = total + norm.log()
        return total


def fit(model, sequences, epochs=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(epochs):
        optimizer.zero_grad()
        nll = -torch.stack([model.log_likelihood(s) for s in sequences]).mean()
        nll.backward()
        optimizer.step()
        print("nll", round(nll.item(), 4))


if __name__ == "__main__":
    torch.manual_seed(5)
    fit(MarkovModel(3, 4), [torch.randint(0, 4, (9,)) for _ in range(4)])
