"""Temporal graph memory in which the messages of one batch are kept raw and are applied, with gradients, when the next
batch starts; what is stored between batches is cut off from the graph (truncated backpropagation of length one)."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(2)

NODES, WIDTH, DIM = 50, 30, 8
DIRECTION = F.normalize(torch.randn(WIDTH), dim=0) * 1.3


def make_stream(rounds):
    state = torch.randn(NODES)
    stream = []
    for _ in range(rounds):
        state = 0.97 * state + 0.24 * torch.randn(NODES)
        src, dst = torch.randperm(NODES).chunk(2)
        feature = torch.randn(len(src), WIDTH) + state[src].unsqueeze(1) * DIRECTION
        label = (state[src] > state[dst]).float()
        reverse = torch.randn(len(dst), WIDTH) + state[dst].unsqueeze(1) * DIRECTION
        stream.append((src, dst, feature, reverse, label))
    return stream


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRUCell(WIDTH, DIM)
        self.score = nn.Linear(2 * DIM, 1)
        self.register_buffer("memory", torch.zeros(NODES, DIM))
        self.pending = None

    def reset(self):
        self.memory.zero_()
        self.pending = None

    def current(self):
        if self.pending is None:
            return self.memory.clone()
        nodes, message = self.pending
        fresh = self.gru(message, self.memory[nodes])
        return self.memory.index_copy(0, nodes, fresh)

    def forward(self, src, dst):
        table = self.current()
        return self.score(torch.cat([table[src], table[dst]], 1)).squeeze(1), table

    def commit(self, table, nodes, message):
        self.memory = table.detach()
        self.pending = (nodes, message)


def run(model, stream, optimizer=None):
    model.reset()
    model.train(optimizer is not None)
    right = total = 0
    for src, dst, feature, reverse, label in stream:
        with torch.set_grad_enabled(optimizer is not None):
            logits, table = model(src, dst)
            loss = F.binary_cross_entropy_with_logits(logits, label)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.commit(table, torch.cat([src, dst]), torch.cat([feature, reverse]))
        right += ((logits > 0) == label.bool()).sum().item()
        total += len(label)
    return right / total


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
train, test = make_stream(120), make_stream(120)
untrained = run(model, test)
for epoch in range(9):
    accuracy = run(model, train, optimizer)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}  training accuracy {accuracy:.3f}")
print(f"test accuracy {untrained:.3f} before, {run(model, test):.3f} after")
