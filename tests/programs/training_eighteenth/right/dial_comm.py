"""Two agents learn a one-bit-per-step protocol (after DIAL, Foerster et al., 2016).

The speaker sees a digit and sends two bits, one after the other; the listener has to name the digit. The bits are hard in
the forward pass; gradients of the listener's loss reach the speaker through a straight-through estimator.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED, N_SYMBOLS, BITS, STEPS, BATCH = 6, 4, 2, 600, 64
torch.manual_seed(SEED)
PROTOTYPES = torch.randn(N_SYMBOLS, 10)


def sample(n):
    symbol = torch.randint(N_SYMBOLS, (n,))
    return PROTOTYPES[symbol] + 0.3 * torch.randn(n, 10), symbol


class Binarise(nn.Module):
    """Regularised channel: logits plus noise in training, a plain threshold in execution."""

    def __init__(self, noise=0.5):
        super().__init__()
        self.noise = noise

    def forward(self, logits):
        if self.training:
            logits = logits + self.noise * torch.randn_like(logits)
        soft = torch.sigmoid(logits)
        hard = (soft > 0.5).float()
        return hard.detach() + soft - soft.detach()


class Speaker(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.look = nn.Sequential(nn.Linear(10, hidden), nn.Tanh())
        self.cell = nn.GRUCell(1, hidden)
        self.bit = nn.Linear(hidden, 1)
        self.channel = Binarise()

    def forward(self, view):
        h, last, message = self.look(view), torch.zeros(len(view), 1), []
        for _ in range(BITS):
            h = self.cell(last, h)
            bit = self.channel(self.bit(h))
            message.append(bit)
            last = bit.detach()
        return torch.stack(message)


class Listener(nn.Module):
    """Hears the bits in order; the last state estimates the value of each guess (reward one if right)."""

    def __init__(self, hidden=32):
        super().__init__()
        self.cell = nn.GRUCell(1, hidden)
        self.q = nn.Linear(hidden, N_SYMBOLS)

    def forward(self, message):
        h = torch.zeros(message.shape[1], self.cell.hidden_size)
        for bit in message:
            h = self.cell(2 * bit - 1, h)
        return self.q(h)


speaker, listener = Speaker(), Listener()
optimizer = torch.optim.RMSprop([*speaker.parameters(), *listener.parameters()], lr=2e-3)


def evaluate():
    speaker.eval(), listener.eval()
    with torch.no_grad():
        view, symbol = sample(1000)
        message = speaker(view)
        right = (listener(message).argmax(-1) == symbol).float().mean().item()
        codes = {tuple(m.long().flatten().tolist()) for m in message.transpose(0, 1)}
    speaker.train(), listener.train()
    return right, len(codes)


print(f"success before training {evaluate()[0]:.3f}")
for step in range(STEPS):
    view, symbol = sample(BATCH)
    q = listener(speaker(view))
    guess = torch.where(torch.rand(BATCH) < 0.5, torch.randint(N_SYMBOLS, (BATCH,)), q.argmax(-1))
    reward = (guess == symbol).float()
    loss = F.mse_loss(q.gather(1, guess[:, None]).squeeze(1), reward)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(speaker.parameters(), 1.0)
    optimizer.step()
    if step % 200 == 0:
        right, codes = evaluate()
        print(f"step {step}  loss {loss.item():.4f}  success {right:.3f}  messages in use {codes}")

right, codes = evaluate()
print(f"success after training {right:.3f} with {codes} messages")
