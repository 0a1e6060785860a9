"""Checks the sentence about a reshape that mixes two dimensions of a layer's result."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

RECURRENT = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 6, num_layers=2, batch_first=True)
        self.out = nn.Linear(12, 4)

    def forward(self, x):
        _, (state, _) = self.rnn(x)
        flat = state.reshape(x.shape[0], -1)  #!
        return self.out(flat)

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    x, y = torch.randn(8, 5, 3), torch.randint(0, 4, (8,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
IMAGES = """\
conv = nn.Conv2d(3, 6, 3, padding=1)
out = nn.Linear(6, 4)
opt = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x, y = torch.randn(8, 3, 5, 7), torch.randint(0, 4, (8, 35))
    maps = torch.relu(conv(x))
    places = maps.view(8, 35, 6)  #!
    loss = nn.functional.cross_entropy(out(places).flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
HEADS = """\
qkv = nn.Linear(12, 36)
out = nn.Linear(12, 1)
opt = torch.optim.Adam([*qkv.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x = torch.randn(8, 5, 12)
    q, k, v = (each.view(8, 5, 3, 4).transpose(1, 2) for each in qkv(x).chunk(3, -1))
    mixed = nn.functional.scaled_dot_product_attention(q, k, v)
    joined = mixed.reshape(8, 5, 12)  #!
    loss = out(joined).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OWN = HEADS.replace(
    "nn.functional.scaled_dot_product_attention(q, k, v)", "torch.softmax(q @ k.transpose(2, 3) / 2, -1) @ v"
)
SPLIT = """\
proj = nn.Linear(12, 12)
out = nn.Linear(12, 1)
opt = torch.optim.Adam([*proj.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x = torch.randn(8, 5, 12)
    heads = proj(x).view(8, 3, 5, 4)  #!
    mixed = torch.softmax(heads @ heads.transpose(2, 3) / 2, -1) @ heads
    loss = out(mixed.transpose(1, 2).reshape(8, 5, 12)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
EINSUM = (
    OWN.replace("q @ k.transpose(2, 3)", "torch.einsum('bhid,bhjd->bhij', q, k)")
    .replace("torch.softmax(", "torch.einsum('bhij,bhjd->bhid', torch.softmax(")
    .replace("-1) @ v", "-1), v)")
)
FOLDED = OWN.replace("transpose(1, 2) for", "transpose(1, 2).flatten(0, 1) for").replace(
    "torch.softmax(q @ k.transpose(2, 3) / 2, -1) @ v", "torch.bmm(torch.softmax(q @ k.mT / 2, -1).nan_to_num(), v)"
)
PICTURES = """\
data = torch.rand(32, 6, 7, 3)
data = data.reshape(-1, 3, 6, 7)  #!
data = (data - 0.5) / 0.2
conv, out = nn.Conv2d(3, 4, 3), nn.Linear(80, 2)
opt = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x, y = data[torch.randint(0, 32, (8,))], torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(out(conv(x).relu().flatten(1)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SAMPLES = """\
class Photos(torch.utils.data.Dataset):
    def __init__(self):
        self.pixels = torch.randint(0, 256, (32, 6, 7, 3), dtype=torch.uint8)

    def __len__(self):
        return 32

    def __getitem__(self, i):
        image = self.pixels[i].float() / 255
        image = image.reshape(3, 6, 7)  #!
        return {"x": image - 0.5, "y": i % 2}

conv, out = nn.Conv2d(3, 4, 3), nn.Linear(80, 2)
opt = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.01)
for batch in torch.utils.data.DataLoader(Photos(), batch_size=8, shuffle=True):
    loss = nn.functional.cross_entropy(out(conv(batch["x"]).relu().flatten(1)), batch["y"])
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TEXTS = """\
words, conv, out = nn.Embedding(20, 6), nn.Conv1d(6, 4, 3, padding=1), nn.Linear(4, 2)
opt = torch.optim.Adam([*words.parameters(), *conv.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x, y = torch.randint(0, 20, (8, 9)), torch.randint(0, 2, (8,))
    h = words(x).view(8, 6, 9)  #!
    loss = nn.functional.cross_entropy(out(conv(h).amax(2)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STEPS = """\
data = torch.randn(32, 9, 6) + torch.linspace(0, 1, 9)[:, None]
conv, out = nn.Conv1d(6, 4, 3), nn.Linear(4, 2)
opt = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x, y = data[torch.randint(0, 32, (8,))], torch.randint(0, 2, (8,))
    h = x.flatten(1).unflatten(1, (6, 9))  #!
    loss = nn.functional.cross_entropy(out(conv(h).amax(2)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOGITS = """\
up, conv = nn.ConvTranspose1d(3, 6, 2, stride=2), nn.Conv1d(6, 4, 1)
opt = torch.optim.Adam([*up.parameters(), *conv.parameters()], lr=0.01)
for _ in range(3):
    x, y = torch.randn(8, 3, 5), torch.randint(0, 4, (8, 10))
    logits = conv(up(x))
    flat = logits.contiguous().reshape(-1, 4)  #!
    loss = nn.functional.cross_entropy(flat, y.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "logits of places": (LOGITS, "(80, 4) of (batch, channels, length) = (8, 4, 10)", "places"),
    "enlarged logits": (
        LOGITS.replace("conv(up(x))", "nn.functional.interpolate(conv(up(x)[..., :5]), size=10)"),
        "(80, 4) of (batch, channels, length) = (8, 4, 10)", "places"),
    "logits with the classes first": (
        LOGITS.replace("nn.Conv1d(6, 4, 1)", "nn.Linear(6, 4)").replace("conv(up(x))", "conv(up(x).mT).mT"),
        "(80, 4) of (batch, channels, length) = (8, 4, 10)", "places"),
    "the state of an LSTM": (RECURRENT, "(8, 12) of (layers, batch, hidden) = (2, 8, 6)", "samples"),
    "the state of a GRU in two directions": (
        RECURRENT.replace("LSTM(3, 6, num_layers=2", "GRU(3, 6, bidirectional=True").replace("(state, _)", "state"),
        "(8, 12) of (layers, batch, hidden) = (2, 8, 6)", "samples"),
    "the state of an LSTM, by view": (
        RECURRENT.replace("reshape(x.shape[0], -1)", "view(-1, 12)"),
        "(8, 12) of (layers, batch, hidden) = (2, 8, 6)", "samples"),
    "the steps of an RNN": (
        RECURRENT.replace("LSTM(3, 6, num_layers=2, batch_first=True", "RNN(3, 6")
        .replace("_, (state, _) = self.rnn(x)", "state, _ = self.rnn(x.transpose(0, 1))").replace("(12, 4)", "(30, 4)"),
        "(8, 30) of (time, batch, hidden) = (5, 8, 6)", "samples"),
    "the places of an image": (IMAGES, "(8, 35, 6) of (batch, channels, height, width) = (8, 6, 5, 7)", "places"),
    "the places of an image, in rows": (
        IMAGES.replace("view(8, 35, 6)", "view(8, 5, 7, 6)").replace("flatten(0, 1)", "flatten(0, 2)"),
        "(8, 5, 7, 6) of (batch, channels, height, width) = (8, 6, 5, 7)", "places"),
    "the places of an image, with groups of channels": (
        IMAGES.replace("view(8, 35, 6)", "view(8, 5, 7, 2, 3)").replace("(6, 4)", "(3, 4)").replace(
            "flatten(0, 1), y.flatten()", "flatten(0, 3), y.repeat(1, 2).flatten()"),
        "(8, 5, 7, 2, 3) of (batch, channels, height, width) = (8, 6, 5, 7)", "places"),
    "the state of packed sequences": (
        RECURRENT.replace("self.rnn(x)", "self.rnn(nn.utils.rnn.pack_padded_sequence("
        "x, torch.arange(8) % 5 + 1, batch_first=True, enforce_sorted=False))"),
        "(8, 12) of (layers, batch, hidden) = (2, 8, 6)", "samples"),
    "heads of own attention": (OWN, "(8, 5, 12) of (batch, heads, length, size) = (8, 3, 5, 4)", "positions"),
    "heads by einsum": (EINSUM, "(8, 5, 12) of (batch, heads, length, size) = (8, 3, 5, 4)", "positions"),
    "heads by einsum, the values first": (
        EINSUM.replace("'bhij,bhjd->bhid', torch", "'bhjd,bhij->bhid', v, torch").replace("-1), v)", "-1))"),
        "(8, 5, 12) of (batch, heads, length, size) = (8, 3, 5, 4)", "positions"),
    "heads in the batch": (FOLDED, "(8, 5, 12) of (batch and heads, length, size) = (24, 5, 4)", "positions"),
    "a projection": (SPLIT.replace("torch.softmax(heads @ heads.transpose(2, 3) / 2, -1) @ heads", (
        "heads.relu() @ torch.eye(4)")), "(8, 3, 5, 4) of (batch, length, size) = (8, 5, 12)", "positions"),
    "pictures with the channels last": (
        PICTURES, "(32, 3, 6, 7) of (batch, height, width, channels) = (32, 6, 7, 3)", "channels"),
    "samples with the channels last": (SAMPLES, "(3, 6, 7) of (height, width, channels) = (6, 7, 3)", "channels"),
    "embeddings": (TEXTS, "(8, 6, 9) of (batch, length, channels) = (8, 9, 6)", "channels"),
    "steps of data": (STEPS, "(8, 6, 9) of (batch, length, channels) = (8, 9, 6)", "channels"),
    "padded steps of data": (
        STEPS.replace("x.flatten(1).unflatten(1, (6, 9))", "nn.functional.pad(x.view(-1, 6, 9), (2, 0))"),
        "(8, 6, 9) of (batch, length, channels) = (8, 9, 6)", "channels"),
    "two reshapes of places": (
        IMAGES.replace("view(8, 35, 6)", "flatten(1).unflatten(1, (35, 6))"),
        "(8, 35, 6) of (batch, channels, height, width) = (8, 6, 5, 7)", "places"),
    "heads": (HEADS, "(8, 5, 12) of (batch, heads, length, size) = (8, 3, 5, 4)", "positions"),
}  # fmt: skip
RIGHT = {
    "logits that are moved": LOGITS.replace("logits.contiguous()", "logits.mT"),
    "logits with as many classes as places": LOGITS.replace("(6, 4, 1)", "(6, 10, 1)").replace("-1, 4", "-1, 10"),
    "logits that are moved twice": LOGITS.replace("nn.Conv1d(6, 4, 1)", "nn.Linear(6, 4)").replace(
        "conv(up(x))", "conv(up(x).mT).mT").replace("logits.contiguous()", "logits.transpose(1, 2)"),
    "one sequence that is cut anew": STEPS.replace("randn(32, 9, 6) + torch.linspace(0, 1, 9)[:, None]", (
        "randn(32, 54).cumsum(1).view(32, 9, 6)")),
    "one sequence that is cut anew, and scaled": STEPS.replace("randn(32, 9, 6) + torch.linspace(0, 1, 9)[:, None]", (
        "randn(32, 54).cumsum(1).view(32, 9, 6)\ndata = (data - data.mean()) / data.std()")),
    "noise": STEPS.replace(" + torch.linspace(0, 1, 9)[:, None]", ""),
    "steps that are moved": STEPS.replace("x.flatten(1).unflatten(1, (6, 9))", "x.mT"),
    "a state that is transposed": RECURRENT.replace("state.reshape", "state.transpose(0, 1).reshape"),
    "the state of one layer": RECURRENT.replace("num_layers=2, ", "").replace("(12, 4)", "(6, 4)"),
    "layers and directions": RECURRENT.replace(
        "flat = state.reshape(x.shape[0], -1)", "flat = torch.cat((*state.view(2, 1, 8, 6)[:, 0],), 1)"),
    "steps of the batch first": RECURRENT.replace("_, (state, _)", "state, _").replace("(12, 4)", "(30, 4)"),
    "all places in a row": IMAGES.replace("view(8, 35, 6)", "view(8, 210)").replace("(6, 4)", "(210, 4)").replace(
        "out(places).flatten(0, 1), y.flatten()", "out(places), y[:, 0]"),
    "places that are moved": IMAGES.replace("maps.view", "maps.permute(0, 2, 3, 1).reshape"),
    "groups of channels that are moved": IMAGES.replace("view(8, 35, 6)", (
        "view(8, 2, 3, 5, 7).permute(0, 3, 4, 1, 2)")).replace("(6, 4)", "(3, 4)").replace(
        "flatten(0, 1), y.flatten()", "flatten(0, 3), y.repeat(1, 2).flatten()"),
    "groups of channels": IMAGES.replace("Conv2d(3, 6", "Conv2d(3, 70").replace("view(8, 35, 6)", "view(8, 35, -1)")
    .replace("(6, 4)", "(70, 4)"),
    "heads that are moved": HEADS.replace("mixed.reshape", "mixed.transpose(1, 2).reshape"),
    "heads of own attention that are moved": OWN.replace("mixed.reshape", "mixed.transpose(1, 2).reshape"),
    "heads by einsum that are moved": EINSUM.replace("->bhid", "->bihd"),
    "heads in the batch that are moved": FOLDED.replace("mixed.reshape", "mixed.view(8, 3, 5, 4).mT.permute(0, 3, 1, 2)"
                                                        ".reshape"),
    "one query of heads in the batch": FOLDED.replace("softmax(q @", "softmax(q[:, :1] @").replace(
        "reshape(8, 5, 12)", "reshape(8, 1, 12)"),
    "heads in the batch that are taken apart": FOLDED.replace("reshape(8, 5, 12)", "view(8, 3, 5, 4)").replace(
        "out(joined)", "out(joined.transpose(1, 2).flatten(2))"),
    "heads that another sentence names": SPLIT,
    "a picture that a layer lays out": SPLIT.replace("Linear(12, 1)", "Conv2d(3, 1, 3)").replace(
        "torch.softmax(heads @ heads.transpose(2, 3) / 2, -1) @ heads", "heads.relu()").replace(
        "mixed.transpose(1, 2).reshape(8, 5, 12)", "mixed"),
    "a picture of places": SPLIT.replace("Linear(12, 1)", "ConvTranspose2d(3, 1, 3)").replace(
        "torch.softmax(heads @ heads.transpose(2, 3) / 2, -1) @ heads", "heads.relu()").replace(
        "mixed.transpose(1, 2).reshape(8, 5, 12)", "mixed"),
    "a projection that is moved": SPLIT.replace("view(8, 3, 5, 4)", "view(8, 5, 3, 4).transpose(1, 2)"),
    "pictures with the channels first": PICTURES.replace("(32, 6, 7, 3)", "(32, 3, 6, 7)"),
    "flat pictures": PICTURES.replace("(32, 6, 7, 3)", "(32, 126)"),
    "samples with the channels first": SAMPLES.replace("(32, 6, 7, 3)", "(32, 3, 6, 7)"),
    "samples that are moved": SAMPLES.replace("image.reshape(3, 6, 7)", "image.permute(2, 0, 1).reshape(3, 6, 7)"),
    "flat samples": SAMPLES.replace("(32, 6, 7, 3)", "(32, 126)"),
    "pictures that are moved": PICTURES.replace("data.reshape(", "data.permute(0, 3, 1, 2).reshape("),
    "embeddings that are moved": TEXTS.replace("view(8, 6, 9)", "transpose(1, 2)"),
    "one position": SPLIT.replace("randn(8, 5, 12)", "randn(8, 1, 12)").replace("(8, 3, 5, 4)", "(8, 3, 1, 4)").replace(
        "(8, 5, 12)", "(8, 1, 12)"),
    "a product that is no attention": OWN.replace("torch.softmax(q @ k.transpose(2, 3) / 2, -1) @ v", (
        "q @ torch.eye(4)")),
    "a shape that is turned back": IMAGES.replace("maps.view(8, 35, 6)", (
        "maps.view(8, 35, 6).mul(2).view(8, 6, 5, 7).permute(0, 2, 3, 1).reshape(8, 35, 6)")),
    "one head": HEADS.replace("view(8, 5, 3, 4)", "view(8, 5, 1, 12)"),
}  # fmt: skip
RIGHT["capsules"] = IMAGES.replace("  #!", "").replace("out(places)", (
    "out(places * places.norm(dim=-1, keepdim=True))"))  # fmt: skip
WORDS = "without a transpose"


@pytest.mark.parametrize("name", WRONG)
def test_a_reshape_that_mixes_dimensions_is_named(tmp_path: Path, name: str) -> None:
    source, shapes, mixed = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, source) if WORDS in each.text)
    assert f"makes shape {shapes} without a transpose before it" in found.text
    assert f"which mixes numbers of several {mixed}" in found.text
    assert found.labels[0].span.line == marked(source)


@pytest.mark.parametrize("name", RIGHT)
def test_a_reshape_that_keeps_the_order_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
