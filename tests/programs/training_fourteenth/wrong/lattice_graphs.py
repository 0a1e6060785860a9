"""Message passing on random periodic alloy lattices; the target is a formation-energy-like sum over bonds."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

N_SITES = 12
N_SPECIES = 4
RADIUS = 0.42
N_TRAIN, N_VAL = 256, 96


def minimum_image(delta):
    return delta - delta.round()


def make_crystal(mixing):
    frac = torch.rand(N_SITES, 3)
    species = torch.randint(0, N_SPECIES, (N_SITES,))
    dist = minimum_image(frac[:, None] - frac[None]).norm(dim=-1)
    adjacency = (dist < RADIUS) & ~torch.eye(N_SITES, dtype=torch.bool)
    src, dst = adjacency.nonzero().T
    bond = dist[src, dst]
    energy = 0.5 * (mixing[species[src], species[dst]] * torch.exp(-4 * bond)).sum() / N_SITES
    return {"z": species, "edges": torch.stack([src, dst]), "length": bond, "y": energy}


def collate(crystals):
    offsets = torch.arange(len(crystals)) * N_SITES
    return {
        "z": torch.cat([c["z"] for c in crystals]),
        "edges": torch.cat([c["edges"] + o for c, o in zip(crystals, offsets)], dim=1),
        "length": torch.cat([c["length"] for c in crystals]),
        "graph": torch.arange(len(crystals)).repeat_interleave(N_SITES),
        "y": torch.stack([c["y"] for c in crystals]),
    }


class BondConv(nn.Module):
    def __init__(self, width, n_rbf):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + n_rbf, width), nn.SiLU(), nn.Linear(width, width))
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, edges, rbf):
        src, dst = edges
        m = self.message(torch.cat([h[src], h[dst], rbf], dim=-1))
        incoming = torch.zeros_like(h)
        incoming[dst] += m
        return h + self.update(torch.cat([h, incoming], dim=-1))


class CrystalNet(nn.Module):
    def __init__(self, width=32, n_rbf=8, n_layers=2):
        super().__init__()
        self.embed = nn.Embedding(N_SPECIES, width)
        self.layers = nn.ModuleList(BondConv(width, n_rbf) for _ in range(n_layers))
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.register_buffer("centres", torch.linspace(0.0, RADIUS, n_rbf))

    def forward(self, batch):
        h = self.embed(batch["z"])
        rbf = torch.exp(-((batch["length"][:, None] - self.centres) / 0.06) ** 2)
        for layer in self.layers:
            h = layer(h, batch["edges"], rbf)
        site_energy = self.readout(h).squeeze(-1)
        n_graphs = batch["y"].shape[0]
        total = torch.zeros(n_graphs).index_add(0, batch["graph"], site_energy)
        return total / N_SITES


mixing = torch.randn(N_SPECIES, N_SPECIES)
mixing = mixing + mixing.T
data = [make_crystal(mixing) for _ in range(N_TRAIN + N_VAL)]
train, val = data[:N_TRAIN], collate(data[N_TRAIN:])
mean = torch.stack([c["y"] for c in train]).mean()
std = torch.stack([c["y"] for c in train]).std()

model = CrystalNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
EPOCHS, BATCH = 18, 32
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=EPOCHS * (N_TRAIN // BATCH))

for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for idx in torch.randperm(N_TRAIN).split(BATCH):
        batch = collate([train[i] for i in idx.tolist()])
        loss = F.mse_loss(model(batch), (batch["y"] - mean) / std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item() * len(idx) / N_TRAIN
    if (epoch + 1) % 6 == 0:
        print(f"epoch {epoch + 1:2d}  train mse {running:.4f}")

model.eval()
with torch.no_grad():
    prediction = model(val) * std + mean
mae = (prediction - val["y"]).abs().mean().item()
r2 = 1 - ((prediction - val["y"]) ** 2).mean().item() / val["y"].var(unbiased=False).item()
bonds_per_site = val["edges"].shape[1] / val["z"].shape[0]
print(f"validation MAE {mae:.4f}  R2 {r2:.3f}  ({bonds_per_site:.1f} bonds per site)")
