"""Sequence to sequence model that reverses digit strings."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, BOS, LENGTH, DIM = 11, 10, 6, 32


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder_embed = nn.Embedding(VOCAB, DIM)
        self.encoder_rnn = nn.GRU(DIM, DIM, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * DIM, DIM)
        self.decoder_embed = nn.Embedding(VOCAB, DIM)
        self.decoder_rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.decoder_out = nn.Linear(DIM, VOCAB - 1)

    def forward(self, src, tgt_in):
        _, state = self.encoder_rnn(self.encoder_embed(src))
        joined = torch.cat([state[0], state[1]], dim=-1)
        hidden = torch.tanh(self.bridge(joined)).unsqueeze(0)
        out, _ = self.decoder_rnn(self.decoder_embed(tgt_in), hidden)
        return self.decoder_out(out)


def batch(n, gen):
    src = torch.randint(10, (n, LENGTH), generator=gen)
    tgt = src.flip(1)
    tgt_in = torch.cat([torch.full((n, 1), BOS), tgt[:, :-1]], dim=1)
    return src, tgt_in, tgt


def build_optimizer(model, lr_encoder, lr_decoder):
    named = list(model.named_parameters())
    encoder = [p for n, p in named if n.startswith("encoder")]
    decoder = [p for n, p in named if n.startswith("decoder")]
    return torch.optim.Adam(
        [{"params": encoder, "lr": lr_encoder}, {"params": decoder, "lr": lr_decoder}]
    )


def main():
    torch.manual_seed(43)
    gen = torch.Generator().manual_seed(44)
    model = Seq2Seq()
    optimizer = build_optimizer(model, 5e-3, 5e-3)
    for step in range(80):
        src, tgt_in, tgt = batch(64, gen)
        logits = model(src, tgt_in)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB - 1), tgt.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            acc = (logits.argmax(-1) == tgt).float().mean().item()
            print(f"step {step}: loss {loss.item():.4f} token acc {acc:.3f}")
    return model, optimizer


if __name__ == "__main__":
    main()
