"""TransE on a small synthetic knowledge graph: entities are places on a torus, relations are moves between them."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = 12
DIM = 24
EPOCHS = 20
BATCH = 256
MARGIN = 1.0
MOVES = [(1, 0), (0, 1), (-1, 0), (0, -1), (2, 1), (-1, 2)]


def make_graph():
    triples = []
    for x in range(SIDE):
        for y in range(SIDE):
            for relation, (dx, dy) in enumerate(MOVES):
                tail = (x + dx) % SIDE * SIDE + (y + dy) % SIDE
                triples.append((x * SIDE + y, relation, tail))
    random.Random(5).shuffle(triples)
    triples = torch.tensor(triples)
    cut = int(0.9 * len(triples))
    return triples[:cut], triples[cut:]


class TransE(nn.Module):
    def __init__(self, n_entities, n_relations, dim):
        super().__init__()
        self.entities = nn.Embedding(n_entities, dim)
        self.relations = nn.Embedding(n_relations, dim)
        bound = 6 / dim ** 0.5
        nn.init.uniform_(self.entities.weight, -bound, bound)
        nn.init.uniform_(self.relations.weight, -bound, bound)
        with torch.no_grad():
            self.relations.weight.copy_(F.normalize(self.relations.weight, dim=-1))

    def project_entities(self):
        """Entities live on the unit sphere, as in Bordes et al. 2013."""
        unit = F.normalize(self.entities.weight.detach(), dim=-1)
        self.entities.weight = nn.Parameter(unit)

    def forward(self, triples):
        head = self.entities(triples[:, 0])
        relation = self.relations(triples[:, 1])
        tail = self.entities(triples[:, 2])
        return (head + relation - tail).pow(2).sum(-1)

    @torch.no_grad()
    def rank_tails(self, triples):
        guess = self.entities(triples[:, 0]) + self.relations(triples[:, 1])
        distance = torch.cdist(guess, self.entities.weight)
        own = distance.gather(1, triples[:, 2:3])
        return (distance < own).sum(1) + 1


def corrupt(triples, n_entities):
    fake = triples.clone()
    replace_head = torch.rand(len(fake)) < 0.5
    strangers = torch.randint(n_entities, (len(fake),))
    fake[:, 0] = torch.where(replace_head, strangers, fake[:, 0])
    fake[:, 2] = torch.where(replace_head, fake[:, 2], strangers)
    return fake


def train_epoch(model, optimizer, triples, n_entities):
    total = 0.0
    for part in torch.randperm(len(triples)).split(BATCH):
        positive = triples[part]
        negative = corrupt(positive, n_entities)
        loss = F.relu(MARGIN + model(positive) - model(negative)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(part)
    return total / len(triples)


def main():
    torch.manual_seed(11)
    train, test = make_graph()
    n_entities = SIDE * SIDE
    model = TransE(n_entities, len(MOVES), DIM)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(EPOCHS):
        model.project_entities()
        loss = train_epoch(model, optimizer, train, n_entities)
        if epoch % 5 == 4:
            ranks = model.rank_tails(test).float()
            print(f"epoch {epoch + 1:3d}  margin loss {loss:.4f}  mean rank {ranks.mean():.1f}  "
                  f"hits@10 {(ranks <= 10).float().mean():.3f}")
    return model, optimizer, loss, ranks


if __name__ == "__main__":
    model, optimizer, final_loss, final_ranks = main()
