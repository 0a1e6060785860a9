"""Dense passage retrieval with large in-batch negatives under a memory limit: gradient caching (Gao et al., 2021)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, TOPICS = 300, 60


def make_pairs(n, generator):
    """Queries and passages draw words from the topic they share; the two vocabularies overlap only in part."""
    table = torch.randint(0, VOCAB, (TOPICS, 12), generator=torch.Generator().manual_seed(50))
    topic = torch.arange(n) % TOPICS
    query = torch.gather(table[topic], 1, torch.randint(0, 8, (n, 4), generator=generator))
    passage = torch.gather(table[topic], 1, torch.randint(4, 12, (n, 10), generator=generator))
    noise = torch.randint(0, VOCAB, passage.shape, generator=generator)
    passage = torch.where(torch.rand(passage.shape, generator=generator) < 0.3, noise, passage)
    return query, passage, topic


class Tower(nn.Module):
    def __init__(self, width=48, out=32):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCAB, width, mode="mean")
        self.body = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, out))

    def forward(self, tokens):
        return F.normalize(self.body(self.words(tokens)), dim=1)


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.passage = Tower(), Tower()
        self.log_scale = nn.Parameter(torch.tensor(2.3))

    def contrast(self, q, p):
        logits = self.log_scale.exp() * q @ p.T
        target = torch.arange(len(q))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


class CachedStep:
    """Embeds chunk by chunk without a graph, differentiates the loss at the embeddings, then embeds again with one."""

    def __init__(self, model, chunk):
        self.model, self.chunk = model, chunk

    @torch.no_grad()
    def embed(self, tower, tokens):
        states, parts = [], []
        for part in tokens.split(self.chunk):
            states.append(torch.get_rng_state())
            parts.append(tower(part))
        return torch.cat(parts), states

    def replay(self, tower, tokens, grad, states):
        after = torch.get_rng_state()
        for part, part_grad, state in zip(tokens.split(self.chunk), grad.split(self.chunk), states):
            torch.set_rng_state(state)
            surrogate = (tower(part) * part_grad).sum()
            surrogate.backward()
        torch.set_rng_state(after)

    def __call__(self, query, passage):
        q, q_states = self.embed(self.model.query, query)
        p, p_states = self.embed(self.model.passage, passage)
        q.requires_grad_(True)
        p.requires_grad_(True)
        loss = self.model.contrast(q, p)
        loss.backward()
        self.replay(self.model.query, query, q.grad, q_states)
        self.replay(self.model.passage, passage, p.grad, p_states)
        return loss.detach()


@torch.no_grad()
def topic_hit(model, query, passage, topic):
    model.eval()
    best = (model.query(query) @ model.passage(passage).T).argmax(dim=1)
    model.train()
    return (topic[best] == topic).float().mean().item()


def main(steps=100):
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(4)
    query, passage, topic = make_pairs(900, generator)
    test = make_pairs(240, generator)
    model = Retriever()
    step_fn = CachedStep(model, chunk=15)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        block = torch.randint(0, len(query) // TOPICS, (1,)).item() * TOPICS
        rows = block + torch.randperm(TOPICS)
        optimizer.zero_grad()
        loss = step_fn(query[rows], passage[rows])
        optimizer.step()
        model.log_scale.data.clamp_(0.0, 4.6)
        if step % 25 == 0 or step == steps - 1:
            print(f"step {step:3d}  loss {loss.item():.4f}  scale {model.log_scale.exp().item():.2f}  "
                  f"hit@1 {topic_hit(model, *test):.3f}")
    return model


if __name__ == "__main__":
    model = main()
