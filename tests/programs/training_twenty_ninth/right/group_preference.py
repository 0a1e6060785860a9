"""Preference tuning with group-relative advantages (GRPO): several answers per prompt are compared with each other,
with one update for each batch of answers."""
import copy

import torch
from torch import nn
import torch.nn.functional as F

VOCAB, PROMPT, ANSWER, GROUP = 20, 3, 5, 8
BETA = 0.05


def judge(prompt, answer):
    """Answers that repeat words of the prompt are preferred; repeated neighbours are not."""
    on_topic = (answer[:, :, None] == prompt[:, None, :]).any(-1).float().mean(-1)
    stutter = (answer[:, 1:] == answer[:, :-1]).float().mean(-1)
    return on_topic - 0.5 * stutter


class Policy(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])

    def log_probs(self, tokens):
        """Log-probability of each word of the answer."""
        logp = self(tokens[:, :-1])[:, PROMPT - 1:].log_softmax(-1)
        return logp.gather(-1, tokens[:, PROMPT:, None]).squeeze(-1)

    @torch.no_grad()
    def answer(self, prompt, generator):
        tokens = prompt
        for _ in range(ANSWER):
            probs = self(tokens)[:, -1].softmax(-1)
            tokens = torch.cat([tokens, torch.multinomial(probs, 1, generator=generator)], dim=1)
        return tokens


def group_advantage(reward):
    grouped = reward.view(-1, GROUP)
    centred = grouped - grouped.mean(1, keepdim=True)
    return (centred / (grouped.std(1, keepdim=True) + 1e-4)).view(-1)


def supervised(policy, steps, generator):
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(steps):
        prompt = torch.randint(0, VOCAB, (32, PROMPT), generator=generator)
        copied = prompt.gather(1, torch.randint(0, PROMPT, (32, ANSWER), generator=generator))
        text = torch.cat([prompt, copied], dim=1)
        loss = F.cross_entropy(policy(text[:, :-1])[:, PROMPT - 1:].flatten(0, 1), text[:, PROMPT:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"supervised loss {loss.item():.3f}")


def tune(policy, steps, generator, refresh=20):
    reference = copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    for step in range(1, steps + 1):
        prompt = torch.randint(0, VOCAB, (8, PROMPT), generator=generator).repeat_interleave(GROUP, dim=0)
        tokens = policy.answer(prompt, generator)
        reward = judge(prompt, tokens[:, PROMPT:])
        advantage = group_advantage(reward)
        logp, ref_logp = policy.log_probs(tokens), reference.log_probs(tokens)
        ratio = (logp - logp.detach()).exp()
        gap = ref_logp - logp
        kl = gap.exp() - gap - 1
        loss = -(ratio * advantage[:, None] - BETA * kl).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        if step % refresh == 0:
            print(f"step {step:3d}  reward {reward.mean().item():.3f}  kl {kl.mean().item():.4f}  loss {loss.item():+.5f}")
            reference.load_state_dict(policy.state_dict())
    return reference


if __name__ == "__main__":
    torch.manual_seed(61)
    generator = torch.Generator().manual_seed(62)
    policy = Policy()
    supervised(policy, 30, generator)
    probe = torch.randint(0, VOCAB, (200, PROMPT), generator=generator)
    before = judge(probe, policy.answer(probe, generator)[:, PROMPT:]).mean().item()
    tune(policy, 60, generator)
    after = judge(probe, policy.answer(probe, generator)[:, PROMPT:]).mean().item()
    print(f"mean preference score {before:.3f} -> {after:.3f}")
