"""Learned Trotter-like relaxation of a spin chain: in every half-step disjoint pairs of sites exchange information."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def colour_bonds(n_sites):
    """Bonds of the open chain, split in even and odd ones: no site occurs twice within a colour."""
    bonds = torch.stack([torch.arange(n_sites - 1), torch.arange(1, n_sites)])
    return bonds[:, 0::2], bonds[:, 1::2]


class PairExchange(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * dim + 1, 2 * dim), nn.Tanh(), nn.Linear(2 * dim, 2 * dim))

    def forward(self, left, right, coupling):
        return self.net(torch.cat([left, right, coupling], dim=-1)).chunk(2, dim=-1)


class HandshakeNet(nn.Module):
    """Sites: (n_sites, batch, dim), so that the site index comes first."""

    def __init__(self, n_sites, dim=12, sweeps=3):
        super().__init__()
        self.sweeps = sweeps
        self.embed = nn.Linear(1, dim)
        self.exchange = PairExchange(dim)
        self.readout = nn.Linear(dim, 1)
        even, odd = colour_bonds(n_sites)
        self.register_buffer("even", even)
        self.register_buffer("odd", odd)

    def half_step(self, h, bonds, coupling):
        i, j = bonds
        to_left, to_right = self.exchange(h[i], h[j], coupling[i])
        h = h.clone()
        h[i] += to_left
        h[j] += to_right
        return h

    def forward(self, field, coupling):
        h = self.embed(field.T.unsqueeze(-1))
        coupling = coupling.T.unsqueeze(-1)
        for _ in range(self.sweeps):
            h = self.half_step(h, self.even, coupling)
            h = self.half_step(h, self.odd, coupling)
        return self.readout(h).squeeze(-1).T


def make_chains(n, n_sites, gen):
    """Mean-field magnetisation for random fields and couplings."""
    field = torch.randn(n, n_sites, generator=gen)
    coupling = 0.6 * torch.randn(n, n_sites - 1, generator=gen)
    m = torch.zeros_like(field)
    for _ in range(50):
        local = field.clone()
        local[:, :-1] += coupling * m[:, 1:]
        local[:, 1:] += coupling * m[:, :-1]
        m = 0.5 * m + 0.5 * torch.tanh(local)
    return field, coupling, m


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, default=9)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args([])

    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    train, test = make_chains(300, args.sites, gen), make_chains(100, args.sites, gen)
    model = HandshakeNet(args.sites)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(args.steps):
        idx = torch.randint(len(train[0]), (args.batch,))
        loss = F.mse_loss(model(train[0][idx], train[1][idx]), train[2][idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 49:
            print(f"step {step + 1}  loss {loss.item():.5f}")
    with torch.no_grad():
        mse = F.mse_loss(model(test[0], test[1]), test[2]).item()
    print(f"test mse {mse:.5f}, variance of the target {test[2].var():.4f}")
    return model, test, mse


if __name__ == "__main__":
    main()
