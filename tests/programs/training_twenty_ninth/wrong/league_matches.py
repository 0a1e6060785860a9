"""Fictitious self-play in a contextual three-move game.

A context sets how much each kind of win pays. The learner answers the mixture of its own earlier versions; the
mixture of the league is what is played in the end, so it is the mixture whose exploitability counts.
"""
import random

import torch
from torch import nn
from torch.func import functional_call

MOVES = 3
CONTEXT = 4
ROUNDS = 32


class GamePayoffs:
    """Antisymmetric payoffs: move i beats move i+1, and the stakes depend on the context."""

    def __init__(self):
        self.mixing = torch.randn(CONTEXT, MOVES) * 0.5

    def sample_contexts(self, count):
        return torch.randn(count, CONTEXT)

    def matrix(self, context):
        stakes = torch.exp(torch.tanh(context @ self.mixing))
        payoff = torch.zeros(context.shape[0], MOVES, MOVES)
        for move in range(MOVES):
            loser = (move + 1) % MOVES
            payoff[:, move, loser] = stakes[:, move]
            payoff[:, loser, move] = -stakes[:, move]
        return payoff


class Strategy(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CONTEXT, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, MOVES)

    def forward(self, context):
        return self.head(self.body(context)).softmax(dim=-1)


class League:
    """Earlier versions of the learner, kept as weights."""

    def __init__(self, capacity=64):
        self.capacity = capacity
        self.entries = []

    def enrol(self, learner):
        weights = {name: value.detach().cpu() for name, value in learner.state_dict().items()}
        self.entries.append(weights)
        if len(self.entries) > self.capacity:
            self.entries.pop(0)

    @torch.no_grad()
    def mixture(self, skeleton, context, members=None):
        chosen = self.entries if members is None else random.sample(self.entries, min(members, len(self.entries)))
        plays = [functional_call(skeleton, weights, (context,)) for weights in chosen]
        return torch.stack(plays).mean(0)


def expected_payoff(own, payoff, other):
    return torch.einsum("bi,bij,bj->b", own, payoff, other)


def answer(learner, league, game, optimizer, steps=5, batch=64):
    """A few gradient steps towards the best answer to the league."""
    total = 0.0
    for _ in range(steps):
        context = game.sample_contexts(batch)
        payoff = game.matrix(context)
        opponents = league.mixture(learner, context, members=8)
        own = learner(context)
        entropy = -(own * own.clamp_min(1e-8).log()).sum(-1)
        gain = expected_payoff(own, payoff, opponents)
        loss = -(gain + 0.05 * entropy).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += gain.mean().item()
    return total / steps


@torch.no_grad()
def exploitability(league, skeleton, game, count=512):
    context = game.sample_contexts(count)
    mixture = league.mixture(skeleton, context)
    against = torch.einsum("bij,bj->bi", game.matrix(context), mixture)
    return against.max(dim=-1).values.mean().item()


def main():
    torch.manual_seed(8)
    random.seed(8)
    game = GamePayoffs()
    learner = Strategy()
    with torch.no_grad():
        learner.head.bias.copy_(torch.tensor([1.5, 0.0, -0.5]))
    optimizer = torch.optim.Adam(learner.parameters(), lr=1e-2)
    league = League()
    league.enrol(learner)
    for round_index in range(ROUNDS):
        gain = answer(learner, league, game, optimizer)
        league.enrol(learner)
        if round_index % 8 == 7:
            print(f"round {round_index + 1:3d}  members {len(league.entries):3d}  gain against the league {gain:+.4f}  "
                  f"exploitability {exploitability(league, learner, game):.4f}")
    final = exploitability(league, learner, game)
    print(f"exploitability of the league's mixture: {final:.4f}")


if __name__ == "__main__":
    main()
