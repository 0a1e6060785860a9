"""Checks the sentence about sorted predictions that meet other values in the order before the sort."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

from tensorlens import session

BODY = """\
x, time, event = torch.randn(64, 4), torch.rand(64), (torch.rand(64) < 0.5).float()
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)

def cox(risk, time, event):
    order = torch.argsort(time, descending=True)
    risk = risk[order]
    return -((risk - risk.logcumsumexp(0)) * event).mean()  #!

for pick in torch.randperm(64).split(16):
    loss = cox(net(x[pick]).squeeze(1), time[pick], event[pick])
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ORDER, TAKE = "order = torch.argsort(time, descending=True)", "risk = risk[order]"
LOADER = BODY.replace("for pick in torch.randperm(64).split(16):\n", (
    "data = torch.utils.data.TensorDataset(x, time, event)\n"
    "for a, b, c in torch.utils.data.DataLoader(data, batch_size=16, shuffle=True):\n")).replace(
    "net(x[pick]).squeeze(1), time[pick], event[pick]", "net(a).squeeze(1), b, c")  # fmt: skip
FULL = BODY.replace("(torch.rand(64) < 0.5).float()", "None\ndrop = torch.rand(64)\n"
    "event, time = (time <= drop).float(), torch.minimum(time, drop)").replace(
    "for pick in torch.randperm(64).split(16):", "for _ in range(4):").replace("[pick]", "")  # fmt: skip
SUM = "((risk - risk.logcumsumexp(0)) * event).mean()"
PACKED = """\
from torch.nn.utils.rnn import pack_padded_sequence
x, lengths, kinds = torch.randn(64, 9, 16), torch.randint(3, 10, (64,)), torch.randint(0, 3, (64,))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.rnn, self.head = nn.Linear(16, 16), nn.GRU(16, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x, lengths):
        lengths, order = lengths.sort(descending=True)
        packed = pack_padded_sequence(self.proj(x[order]).relu(), lengths, batch_first=True)
        h = self.rnn(packed)[1][-1]
        return self.head(h)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for pick in torch.randperm(64).split(16):
    loss = nn.functional.cross_entropy(net(x[pick], lengths[pick]), kinds[pick])  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
COLLATED = PACKED.replace("net = Net()", """\
def collate(batch):
    x, lengths, kinds = zip(*batch)
    return torch.stack(x), torch.tensor(lengths), torch.tensor(kinds)

net = Net()
rows = list(zip(x, lengths.tolist(), kinds.tolist()))""").replace("for pick in torch.randperm(64).split(16):", (
    "for a, b, c in torch.utils.data.DataLoader(rows, batch_size=16, collate_fn=collate):")).replace(
    "net(x[pick], lengths[pick]), kinds[pick]", "net(a, b), c")  # fmt: skip
WRONG = {
    "all samples at once": FULL,
    "all samples, a mask": FULL.replace(SUM, "(risk - risk.logcumsumexp(0))[event > 0].sum()"),
    "all samples, a dot": FULL.replace(SUM, "(risk - risk.logcumsumexp(0)) @ event"),
    "all samples, turned": FULL.replace("torch.argsort(time, descending=True)", "time.argsort().flip(0)"),
    "a table": FULL.replace("\nnet = ", "\ny = torch.stack([time, event], 1)\nnet = ").replace(
        ", time, event)\n    opt", ", y[:, 0], y[:, 1])\n    opt"),
    "a split": FULL.replace("for _ in range(4)", (
        "for x, time, event in zip(x.split(16), time.split(16), event.split(16))")),
    "packed sequences": PACKED,
    "states as wide as the batch": PACKED.replace("GRU(16, 8", "GRU(16, 16").replace("Linear(8", "Linear(16"),
    "packed sequences of a collate function": COLLATED,
    "an order": BODY,
    "sort": BODY.replace(ORDER, "_, order = time.sort(descending=True)"),
    "index_select": BODY.replace(TAKE, "risk = risk.index_select(0, order)"),
    "gather": BODY.replace(TAKE, "risk = torch.gather(risk, 0, order)"),
    "a loader": LOADER,
    "a loss": BODY.replace("return -((risk - risk.logcumsumexp(0)) * event).mean()", (
        "return nn.functional.binary_cross_entropy_with_logits(risk, event)")),
}  # fmt: skip
PLAIN = BODY.replace("  #!", "")
FULL_RIGHT, PACKED_RIGHT = FULL.replace("  #!", ""), PACKED.replace("  #!", "")
RIGHT = {
    "all samples in the order of the sort": FULL_RIGHT.replace("\nnet = ", (
        "\nby = time.argsort(descending=True)\nx, time, event = x[by], time[by], event[by]\nnet = ")),
    "values sorted before": FULL_RIGHT.replace("\nnet = ", "\nevent = event[time.argsort(descending=True)]\nnet = "),
    "a mix of all samples": FULL_RIGHT.replace(TAKE, "risk = 0.5 * risk + 0.5 * risk[order]"),
    "a mean of all differences": FULL_RIGHT.replace(SUM, "(risk - event).mean().square()"),
    "written back": FULL_RIGHT.replace("return", (
        "back = torch.zeros_like(risk).index_copy(0, order, risk)\n    return")).replace(SUM, "(back * event).mean()"),
    "packed, put back": PACKED_RIGHT.replace("self.head(h)", "self.head(h[order.argsort()])"),
    "packed, written back": PACKED_RIGHT.replace("self.head(h)", (
        "self.head(torch.stack([h[i] for i in order.argsort()]))")),
    "packed, sorted inside": PACKED_RIGHT.replace("x[order]", "x").replace("lengths, order =", "_, order =").replace(
        "lengths, batch_first=True)", "lengths, batch_first=True, enforce_sorted=False)", 1),
    "packed, labels in order": PACKED_RIGHT.replace("kinds[pick])", (
        "kinds[pick][lengths[pick].argsort(descending=True)])")),
    "packed, sorted batches": COLLATED.replace("  #!", "").replace("zip(*batch)", (
        "zip(*sorted(batch, key=lambda row: -row[1]))")),
    "a mix of inputs": PACKED_RIGHT.replace("x[order]", "0.5 * x + 0.5 * x[order]"),
    "all in order": PLAIN.replace(TAKE, TAKE + "; event = event[order]"),
    "batches in the order of the sort": PLAIN.replace("for pick in torch.randperm(64).split(16):", (
        "for pick in torch.randperm(64).split(16):\n    pick = pick[time[pick].argsort(descending=True)]")),
    "data in the order of the sort": LOADER.replace("  #!", "").replace("shuffle=True", "shuffle=False").replace(
        "data =", "by = time.argsort(descending=True)\nx, time, event = x[by], time[by], event[by]\ndata ="),
    "put back": PLAIN.replace(TAKE, TAKE + "[order.argsort()]"),
    "a random order": PLAIN.replace("torch.argsort(time, descending=True)", "torch.rand(len(time)).argsort()"),
    "weights of the ranks": PLAIN.replace("* event", "* (1 / torch.arange(1, 17).log1p())"),
    "sorted for both": PLAIN.replace(TAKE, "risk, event = risk.sort().values, event.sort().values"),
    "sorted for both, by one key each": PLAIN.replace(TAKE, TAKE + "; event = event[event.argsort()]"),
    "a mix of rows": PLAIN.replace("(risk - risk.logcumsumexp(0)) * event", "(risk - old)").replace(
        TAKE, "old, risk = risk, risk[order]"),
    "pairs": PLAIN.replace("(risk - risk.logcumsumexp(0)) * event", "risk[:, None] * event[None, :]"),
    "loader, in order": LOADER.replace("  #!", "").replace(TAKE, TAKE + "; event = event[order]"),
}  # fmt: skip
WORDS = "joins rows in two orders"


@pytest.mark.parametrize("name", WRONG)
def test_sorted_predictions_beside_unsorted_values_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_rows_of_one_order_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


@pytest.mark.parametrize(("take", "count"), [(TAKE, 1), (f"{TAKE}; event = event[order]", 0)])
def test_the_last_calls_of_a_long_run_are_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, take: str, count: int
) -> None:
    monkeypatch.setattr(session, "TRAINING_WINDOW", 2_000)
    again = "*[torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)] * 20"
    script = LOADER.replace("torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)", f"chain({again})")
    found = sentences(tmp_path, "from itertools import chain\n" + script.replace(TAKE, take))
    assert len([each for each in found if WORDS in each.text]) == count
