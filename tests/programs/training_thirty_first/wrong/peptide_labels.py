"""Labels each residue of a peptide with its binding class; encoder blocks are checkpointed to fit long chains."""
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

RESIDUES = 20
LENGTH = 16
CLASSES = 3


class EncoderBlock(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_feed = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.contract = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.dropout(self.attend(self.norm_attention(x)))
        hidden = self.dropout(F.gelu(self.expand(self.norm_feed(x))))
        return x + self.dropout(self.contract(hidden))


class Labeller(nn.Module):
    def __init__(self, width=32, depth=2, heads=4, dropout=0.3):
        super().__init__()
        self.residue = nn.Embedding(RESIDUES, width)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.blocks = nn.ModuleList(EncoderBlock(width, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.classify = nn.Linear(width, CLASSES)

    def forward(self, chains):
        x = self.residue(chains) + self.position
        for block in self.blocks:
            if self.training:
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x)
        return self.classify(self.norm(x))


def make_chains(count, affinity):
    chains = torch.randint(0, RESIDUES, (count, LENGTH))
    signal = affinity[chains]
    level = signal + 2.0 * signal.mean(dim=1, keepdim=True)
    labels = (level > 0.6).long() + (level > -0.6).long()
    return chains, labels


def evaluate(model, chains, labels):
    model.eval()
    with torch.no_grad():
        logits = model(chains)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten()).item()
        score = (logits.argmax(dim=-1) == labels).float().mean().item()
    model.train()
    return loss, score


def main():
    torch.manual_seed(21)
    affinity = torch.randn(RESIDUES)
    train_chains, train_labels = make_chains(512, affinity)
    test_chains, test_labels = make_chains(128, affinity)

    model = Labeller()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    steps, batch_size = 50, 16
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    history = []
    for step in range(steps):
        rows = torch.randint(0, len(train_chains), (batch_size,))
        logits = model(train_chains[rows])
        loss = F.cross_entropy(logits.flatten(0, 1), train_labels[rows].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        history.append(loss.item())
        if (step + 1) % 25 == 0:
            test_loss, test_score = evaluate(model, test_chains, test_labels)
            print(f"step {step + 1:3d}  train {loss.item():.4f}  test {test_loss:.4f}  accuracy {test_score:.3f}")


if __name__ == "__main__":
    main()
