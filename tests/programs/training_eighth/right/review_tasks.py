"""Two predictions from short token sequences: the topic and the length of the reply; the second task leans less on the trunk."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, LENGTH, TOPICS = 60, 14, 4


def messages(n, gen):
    topic = torch.randint(0, TOPICS, (n,), generator=gen)
    noise = torch.randint(0, VOCAB, (n, LENGTH), generator=gen)
    own = 10 + 10 * topic.unsqueeze(1) + torch.randint(0, 10, (n, LENGTH), generator=gen)
    tokens = torch.where(torch.rand(n, LENGTH, generator=gen) < 0.35, own, noise)
    pressing = (tokens < 10).float().mean(dim=1)
    reply = 4 * pressing + 0.3 * topic.float() + 0.1 * torch.randn(n, generator=gen)
    return tokens, topic, reply


class Trunk(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.table = nn.Embedding(VOCAB, dim)
        self.conv = nn.Conv1d(dim, 32, 3, padding=1)
        self.norm = nn.LayerNorm(32)

    def forward(self, tokens):
        h = F.gelu(self.conv(self.table(tokens).transpose(1, 2)))
        return self.norm(h.mean(dim=2))


class Branch(nn.Module):
    """A task head that hands only a share of its gradient down to what feeds it."""

    def __init__(self, outputs, share):
        super().__init__()
        self.share = share
        self.layers = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, outputs))

    def forward(self, h):
        entry = h.view_as(h)
        if entry.requires_grad and self.share != 1.0:
            entry.register_hook(lambda g: g * self.share)
        return self.layers(entry)


class MessageModel(nn.Module):
    def __init__(self, reply_share=0.2):
        super().__init__()
        self.trunk = Trunk()
        self.topic = Branch(TOPICS, share=1.0)
        self.reply = Branch(1, share=reply_share)

    def forward(self, tokens):
        h = self.trunk(tokens)
        return self.topic(h), self.reply(h).squeeze(1)


def objective(model, tokens, topic, reply):
    a, b = model(tokens)
    return F.cross_entropy(a, topic), F.mse_loss(b, reply)


@torch.no_grad()
def measure(model, tokens, topic, reply):
    model.eval()
    a, b = model(tokens)
    rsq = 1 - F.mse_loss(b, reply) / reply.var(unbiased=False)
    return (a.argmax(1) == topic).float().mean().item(), rsq.item()


def main(epochs=10):
    torch.manual_seed(27)
    gen = torch.Generator().manual_seed(27)
    train, test = messages(1024, gen), messages(256, gen)
    model = MessageModel()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    warm = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.2, total_iters=40)
    for epoch in range(epochs):
        model.train()
        sums = torch.zeros(2)
        batches = torch.randperm(len(train[0]), generator=gen).split(32)
        for idx in batches:
            losses = objective(model, *(t[idx] for t in train))
            opt.zero_grad()
            sum(losses).backward()
            opt.step()
            warm.step()
            sums += torch.stack([part.detach() for part in losses])
        if epoch % 3 == 0:
            print(f"epoch {epoch} topic {sums[0] / len(batches):.3f} reply {sums[1] / len(batches):.3f}")
    acc, rsq = measure(model, *test)
    print(f"topic accuracy {acc:.3f}, reply R2 {rsq:.3f}")
    return model, acc, rsq


if __name__ == "__main__":
    model, acc, rsq = main()
