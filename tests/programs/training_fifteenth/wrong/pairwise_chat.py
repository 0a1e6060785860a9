"""Direct preference optimisation of a tiny causal language model.

Prompts are number sequences. The base model continues a prompt with an answer token and a short tail that closes it.
The preference data say which answer token people liked: an even one. DPO should move the policy to even answers.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
VOCAB, PROMPT, TAIL, WIDTH = 20, 6, 3, 48
DIGITS, END = 16, 17


class CausalLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


def prompts(n, gen):
    return torch.randint(0, DIGITS, (n, PROMPT), generator=gen)


def answer_for(prompt, offset):
    """The answer near the last prompt token, then a tail that counts up from it, then the end token."""
    start = (prompt[:, -1:] + offset) % DIGITS
    tail = (start + torch.arange(TAIL)) % DIGITS
    return torch.cat([tail, torch.full_like(start, END)], dim=1)


def preference_batch(n, gen):
    p = prompts(n, gen)
    parity = p[:, -1:] % 2
    chosen, rejected = answer_for(p, parity), answer_for(p, 1 - parity)
    mask = torch.zeros(n, PROMPT + TAIL + 1)
    mask[:, PROMPT:] = 1.0
    return torch.cat([p, chosen], dim=1), torch.cat([p, rejected], dim=1), mask


def completion_logp(model, tokens, mask):
    """Sum of the log probabilities of the completion tokens (the prompt is masked out)."""
    logits = model(tokens)[:, :-1]
    labels = tokens[:, 1:]
    per_token = F.log_softmax(logits, dim=-1).gather(2, labels.unsqueeze(-1)).squeeze(-1)
    return (per_token * mask[:, :-1]).sum(dim=1)


def dpo_loss(policy, reference, chosen, rejected, mask, beta=0.5):
    with torch.no_grad():
        ref_margin = completion_logp(reference, chosen, mask) - completion_logp(reference, rejected, mask)
    margin = completion_logp(policy, chosen, mask) - completion_logp(policy, rejected, mask)
    return -F.logsigmoid(beta * (margin - ref_margin)).mean()


@torch.no_grad()
def even_rate(model, n=500):
    p = prompts(n, torch.Generator().manual_seed(123))
    probs = model(p)[:, -1].softmax(-1)
    return probs[:, 0:DIGITS:2].sum(-1).mean().item()


gen = torch.Generator().manual_seed(8)
policy = CausalLM()
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
for step in range(300):
    p = prompts(64, gen)
    text = torch.cat([p, answer_for(p, torch.randint(0, 2, (64, 1), generator=gen))], dim=1)
    loss = F.cross_entropy(policy(text)[:, PROMPT - 1:-1].flatten(0, 1), text[:, PROMPT:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
before = even_rate(policy)
print(f"base model: loss {loss.item():.3f}  share of even answers {before:.3f}")

reference = copy.deepcopy(policy).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3, weight_decay=0.0)
for step in range(200):
    chosen, rejected, mask = preference_batch(64, gen)
    loss = dpo_loss(policy, reference, chosen, rejected, mask)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 0:
        print(f"dpo step {step:3d}  loss {loss.item():.4f}")

after = even_rate(policy)
print(f"after DPO: share of even answers {after:.3f}")
