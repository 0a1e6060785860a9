"""Checks the sentence about sorted predictions that meet other values in the order before the sort."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

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
WRONG = {
    "an order": BODY,
    "sort": BODY.replace(ORDER, "_, order = time.sort(descending=True)"),
    "index_select": BODY.replace(TAKE, "risk = risk.index_select(0, order)"),
    "gather": BODY.replace(TAKE, "risk = torch.gather(risk, 0, order)"),
    "a loader": LOADER,
    "a loss": BODY.replace("return -((risk - risk.logcumsumexp(0)) * event).mean()", (
        "return nn.functional.binary_cross_entropy_with_logits(risk, event)")),
}  # fmt: skip
PLAIN = BODY.replace("  #!", "")
RIGHT = {
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
