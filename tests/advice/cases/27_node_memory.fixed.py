"""Link prediction on a stream of events with a memory per node."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class NodeMemory(nn.Module):
    def __init__(self, n_nodes, dim, n_edge):
        super().__init__()
        self.cell = nn.GRUCell(dim + n_edge, dim)
        self.store = torch.zeros(n_nodes, dim)

    def read(self, nodes):
        return self.store[nodes]

    def write(self, nodes, state):
        self.store[nodes] = state.detach()

    def message(self, nodes, others, edge):
        state = self.cell(torch.cat([self.read(others), edge], dim=-1), self.read(nodes))
        return state


class LinkModel(nn.Module):
    def __init__(self, n_nodes=12, dim=8, n_edge=3):
        super().__init__()
        self.memory = NodeMemory(n_nodes, dim, n_edge)
        self.score = nn.Bilinear(dim, dim, 1)

    def forward(self, src, dst, edge):
        state_src = self.memory.message(src, dst, edge)
        state_dst = self.memory.message(dst, src, edge)
        self.memory.write(src, state_src)
        self.memory.write(dst, state_dst)
        return self.score(state_src, state_dst).squeeze(-1)


def stream(n_batches, size=4):
    for _ in range(n_batches):
        order = torch.randperm(12)
        yield order[:size], order[size:2 * size], torch.randn(size, 3), torch.randint(0, 2, (size,)).float()


def main():
    torch.manual_seed(26)
    model = LinkModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for src, dst, edge, label in stream(4):
        loss = F.binary_cross_entropy_with_logits(model(src, dst, edge), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    main()
