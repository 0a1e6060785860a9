"""Graph classification of synthetic molecules with a hierarchical network: message passing, node pooling, message passing."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ATOMS = 18
KINDS = 8
KEEP = 5
STEPS = 120


def make_molecules(count, generator):
    """Random chains with side bonds; a molecule is active if it has three halogens (kind 0) or more."""
    kinds = torch.randint(KINDS, (count, ATOMS), generator=generator)
    bonds = torch.zeros(count, ATOMS, ATOMS)
    chain = torch.arange(ATOMS - 1)
    bonds[:, chain, chain + 1] = 1
    side = torch.rand(count, ATOMS, ATOMS, generator=generator) < 0.03
    bonds = torch.maximum(bonds, side.float().triu(1))
    bonds = torch.maximum(bonds, bonds.transpose(1, 2))
    active = (kinds == 0).sum(-1) >= 3
    return F.one_hot(kinds, KINDS).float(), bonds, active.float()


class MessagePassing(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.neighbour = nn.Linear(inputs, outputs, bias=False)

    def forward(self, nodes, bonds):
        degree = bonds.sum(-1, keepdim=True).clamp(min=1)
        return F.relu(self.own(nodes) + self.neighbour(bonds @ nodes / degree.sqrt()))


class NodePooling(nn.Module):
    """Keeps the nodes with the highest score, and the bonds among them."""

    def __init__(self, width, keep):
        super().__init__()
        self.keep = keep
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, nodes, bonds):
        norm = self.score.weight.norm()
        scores = torch.tanh(self.score(nodes).squeeze(-1) / norm)
        top, index = scores.topk(self.keep, dim=-1)
        rows = index[..., None]
        kept = nodes.gather(1, rows.expand(-1, -1, nodes.shape[-1]))
        bonds = bonds + bonds @ bonds
        bonds = bonds.gather(1, rows.expand(-1, -1, bonds.shape[-1]))
        bonds = bonds.gather(2, index[:, None].expand(-1, self.keep, -1))
        return kept, (bonds > 0).float(), top


class MoleculeNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first = MessagePassing(KINDS, width)
        self.pooling = NodePooling(width, KEEP)
        self.second = MessagePassing(width, width)
        self.readout = nn.Linear(width, 1)

    def forward(self, atoms, bonds):
        nodes = self.first(atoms, bonds)
        nodes, bonds, top = self.pooling(nodes, bonds)
        nodes = self.second(nodes, bonds)
        return self.readout(nodes.mean(1)).squeeze(-1)


@torch.no_grad()
def accuracy(net, atoms, bonds, active):
    net.eval()
    hits = ((net(atoms, bonds) > 0) == active.bool()).float().mean().item()
    net.train()
    return hits


def main():
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(40)
    net = MoleculeNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    held_out = make_molecules(200, generator)
    for step in range(STEPS):
        atoms, bonds, active = make_molecules(48, generator)
        loss = F.binary_cross_entropy_with_logits(net(atoms, bonds), active)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1:4d}  loss {loss.item():.3f}  held-out accuracy {accuracy(net, *held_out):.3f}")
    return net, optimizer, accuracy(net, *held_out)


if __name__ == "__main__":
    net, optimizer, result = main()
