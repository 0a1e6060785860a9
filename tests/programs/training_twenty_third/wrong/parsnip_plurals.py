"""Seq2seq assignment: a GRU encoder-decoder with attention that spells the plural of a made-up noun."""
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

EOS, SOS = 0, 1
PAD = EOS
LETTERS = "abdeiklmnorstuy"
VOCAB = 2 + len(LETTERS)


def encode(word):
    return [2 + LETTERS.index(c) for c in word]


def decode(ids):
    return "".join(LETTERS[i - 2] if i >= 2 else "?" for i in ids)


def plural(word):
    if word[-1] == "y":
        return word[:-1] + "ies"
    if word[-1] in "sk":
        return word + "es"
    return word + "n" if word[-1] in "aeiou" else word + "s"


def sample_pairs(n):
    words = []
    for _ in range(n):
        length = int(torch.randint(2, 6, (1,)))
        words.append("".join(LETTERS[i] for i in torch.randint(0, len(LETTERS), (length,)).tolist()))
    return [(w, plural(w)) for w in words]


def collate(pairs):
    src = [torch.tensor(encode(s)) for s, _ in pairs]
    tgt = [torch.tensor([SOS] + encode(t) + [EOS]) for _, t in pairs]
    lengths = torch.tensor([len(s) for s in src])
    src = pad_sequence(src, batch_first=True, padding_value=PAD)
    tgt = pad_sequence(tgt, batch_first=True, padding_value=PAD)
    return src, lengths, tgt[:, :-1], tgt[:, 1:]


class Speller(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(2 * dim, VOCAB)

    def encode(self, src, lengths):
        packed = pack_padded_sequence(self.embed(src), lengths, batch_first=True, enforce_sorted=False)
        states, hidden = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True)
        mask = torch.arange(states.size(1))[None] < lengths[:, None]
        return states, mask, hidden

    def step(self, tokens, states, mask, hidden):
        q, hidden = self.decoder(self.embed(tokens), hidden)
        scores = (q @ states.transpose(1, 2)).masked_fill(~mask[:, None], float("-inf"))
        context = torch.softmax(scores / q.size(-1) ** 0.5, -1) @ states
        return self.out(torch.cat([q, context], -1)), hidden

    def forward(self, src, lengths, tgt_in):
        states, mask, hidden = self.encode(src, lengths)
        return self.step(tgt_in, states, mask, hidden)[0]

    @torch.no_grad()
    def translate(self, src, lengths, max_len=9):
        states, mask, hidden = self.encode(src, lengths)
        token, words = torch.full((len(src), 1), SOS), []
        for _ in range(max_len):
            logits, hidden = self.step(token, states, mask, hidden)
            token = logits.argmax(-1)
            words.append(token)
        rows = torch.cat(words, 1).tolist()
        return [decode(r[: r.index(EOS)] if EOS in r else r) for r in rows]


def main():
    torch.manual_seed(5)
    pairs, held_out = sample_pairs(1500), sample_pairs(200)
    model, criterion = Speller(), nn.CrossEntropyLoss(ignore_index=PAD)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(8):
        total, order = 0.0, torch.randperm(len(pairs)).tolist()
        for i in range(0, len(order), 50):
            src, lengths, tgt_in, tgt_out = collate([pairs[j] for j in order[i:i + 50]])
            loss = criterion(model(src, lengths, tgt_in).flatten(0, 1), tgt_out.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
        src, lengths, tgt_in, tgt_out = collate(held_out)
        keep = tgt_out != PAD
        hits = (model(src, lengths, tgt_in).argmax(-1) == tgt_out)[keep].float().mean().item()
        print(f"epoch {epoch}  loss {total / 30:.3f}  held-out letters right {hits:.3f}")
    return model, held_out


if __name__ == "__main__":
    model, held_out = main()
