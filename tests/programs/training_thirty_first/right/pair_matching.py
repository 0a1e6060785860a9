"""Match product photos to descriptions: a contrastive loss over a large batch, encoded in small chunks."""
import torch
import torch.nn.functional as F
from torch import nn

PHOTO = 40
TEXT = 28


def make_pairs(count, generator, factors=6):
    hidden = torch.randn(count, factors, generator=generator)
    mix = torch.Generator().manual_seed(100)
    to_photo = torch.randn(factors, PHOTO, generator=mix)
    to_text = torch.randn(factors, TEXT, generator=mix)
    photo = torch.tanh(hidden @ to_photo) + 0.2 * torch.randn(count, PHOTO, generator=generator)
    text = torch.tanh(hidden @ to_text) + 0.2 * torch.randn(count, TEXT, generator=generator)
    return photo, text


class Tower(nn.Module):
    def __init__(self, inputs, width=48, outputs=12):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, outputs))

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.photo = Tower(PHOTO)
        self.text = Tower(TEXT)
        self.log_scale = nn.Parameter(torch.tensor(1.5))

    def loss(self, photo_codes, text_codes):
        logits = self.log_scale.exp() * photo_codes @ text_codes.t()
        target = torch.arange(len(logits))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


@torch.no_grad()
def encode_chunks(tower, chunks):
    """Codes of all chunks, and the state of the random numbers before each."""
    codes, states = [], []
    for chunk in chunks:
        states.append(torch.get_rng_state())
        codes.append(tower(chunk))
    return torch.cat(codes), states


def replay_chunks(tower, chunks, states, code_grad):
    sizes = [len(chunk) for chunk in chunks]
    for chunk, state, grad in zip(chunks, states, code_grad.split(sizes)):
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(state)
            codes = tower(chunk)
        codes.backward(gradient=grad)


def train_step(model, optimizer, photo, text, chunk_size):
    photo_chunks, text_chunks = photo.split(chunk_size), text.split(chunk_size)
    photo_codes, photo_states = encode_chunks(model.photo, photo_chunks)
    text_codes, text_states = encode_chunks(model.text, text_chunks)
    photo_codes.requires_grad_()
    text_codes.requires_grad_()

    optimizer.zero_grad()
    loss = model.loss(photo_codes, text_codes)
    loss.backward()
    replay_chunks(model.photo, photo_chunks, photo_states, photo_codes.grad)
    replay_chunks(model.text, text_chunks, text_states, text_codes.grad)
    optimizer.step()
    with torch.no_grad():
        model.log_scale.clamp_(max=4.6)
    return loss.item()


@torch.no_grad()
def top_match(model, photo, text):
    model.eval()
    best = (model.photo(photo) @ model.text(text).t()).argmax(dim=1)
    model.train()
    return (best == torch.arange(len(photo))).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(23)
    generator = torch.Generator().manual_seed(19)
    photo, text = make_pairs(2000, generator)
    test_photo, test_text = make_pairs(200, generator)
    model = Matcher()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(80):
        pick = torch.randperm(len(photo))[:128]
        loss = train_step(model, optimizer, photo[pick], text[pick], chunk_size=32)
        if step % 20 == 19:
            print(f"step {step + 1:4d}  loss {loss:.4f}  scale {model.log_scale.exp().item():.2f}")
    matched = top_match(model, test_photo, test_text)
    print(f"share of photos that find their own description {matched:.3f}")
