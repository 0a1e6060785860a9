"""Preference tuning: a reward model learns from ranked answers, then a small policy is tuned against it."""
import copy

import torch
from torch import nn
import torch.nn.functional as F

VOCAB, PROMPT, ANSWER = 24, 3, 5
BETA = 0.5


def ranked_answers(count, generator):
    """Raters like answers with many polite words (ids below 6)."""
    first, second = torch.randint(0, VOCAB, (2, count, ANSWER), generator=generator)
    polite = [(x < 6).float().sum(-1) + 0.3 * torch.rand(count, generator=generator) for x in (first, second)]
    swap = (polite[1] > polite[0])[:, None]
    return torch.where(swap, second, first), torch.where(swap, first, second)


class RewardModel(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.score = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, answer):
        return self.score(self.embed(answer)).squeeze(-1).mean(-1)


class Policy(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])

    def answer_log_probs(self, tokens):
        """Log-probabilities of the whole vocabulary at each position of the answer."""
        return self(tokens[:, :-1])[:, PROMPT - 1:].log_softmax(-1)

    @torch.no_grad()
    def answer(self, prompt, generator):
        tokens = prompt
        for _ in range(ANSWER):
            probs = self(tokens)[:, -1].softmax(-1)
            tokens = torch.cat([tokens, torch.multinomial(probs, 1, generator=generator)], dim=1)
        return tokens


def fit(model, loss_of_batch, steps, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        loss = loss_of_batch()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def rollout(policy, reference, reward_model, generator):
    prompt = torch.randint(0, VOCAB, (32, PROMPT), generator=generator)
    tokens = policy.answer(prompt, generator)
    reward = reward_model(tokens[:, PROMPT:])
    log_probs, ref_log_probs = policy.answer_log_probs(tokens), reference.answer_log_probs(tokens)
    kl = (log_probs.exp() * (log_probs - ref_log_probs)).sum(-1)
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    return {"tokens": tokens, "reward": reward, "advantage": advantage, "kl": kl}


def tune(policy, reference, reward_model, steps, generator):
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    kl_history = []
    for step in range(1, steps + 1):
        batch = rollout(policy, reference, reward_model, generator)
        log_probs = policy.answer_log_probs(batch["tokens"])
        taken = log_probs.gather(-1, batch["tokens"][:, PROMPT:, None]).squeeze(-1)
        policy_loss = -(batch["advantage"][:, None] * taken).mean()
        kl_loss = batch["kl"].mean()
        loss = policy_loss + BETA * kl_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        kl_history.append(kl_loss.item())
        if step % 10 == 0:
            reward = batch["reward"].mean().item()
            print(f"step {step:3d}  reward {reward:.3f}  kl {kl_loss.item():.3f}  loss {loss.item():.3f}")
    return kl_history


if __name__ == "__main__":
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(9)
    reward_model = RewardModel()

    def ranking_loss():
        chosen, rejected = ranked_answers(64, generator)
        return -F.logsigmoid(reward_model(chosen) - reward_model(rejected)).mean()

    print(f"reward model: loss {fit(reward_model, ranking_loss, 30, 1e-2):.3f}")
    reward_model.requires_grad_(False).eval()
    policy = Policy()

    def imitation_loss():
        text = (torch.randint(0, VOCAB, (32, 1), generator=generator) + 5 * torch.arange(PROMPT + ANSWER)) % VOCAB
        return F.cross_entropy(policy(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())

    print(f"supervised: loss {fit(policy, imitation_loss, 30, 5e-3):.3f}")
    reference = copy.deepcopy(policy).requires_grad_(False).eval()
    kl_history = tune(policy, reference, reward_model, 50, generator)
    print(f"final kl to the reference {kl_history[-1]:.3f}")
