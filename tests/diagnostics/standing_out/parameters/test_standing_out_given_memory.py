"""Checks the sentence about parameters that are made in the memory of another parameter."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "memory with"
LAYERS = "a, b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)\n"
TRAIN = """
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for step in range(3):
    opt.zero_grad()
    b(a(torch.randn(8, 4)).tanh()).square().mean().backward()
    opt.step()
"""
PROMPT = """
body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
table = nn.Embedding(10, 4).requires_grad_(False)
prompt = nn.Parameter(table.weight[:3])  #!
opt = torch.optim.Adam([prompt], lr=0.1)
for step in range(3):
    ids = torch.randint(0, 10, (8, 5))
    x = torch.cat([prompt.expand(8, -1, -1), table(ids)], 1)
    opt.zero_grad()
    body(x).square().mean().backward()
    opt.step()
"""
TEACHER = """
teacher, student = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 4)
student.weight = nn.Parameter(teacher.weight.data)  #!
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(8, 4)
    with torch.no_grad():
        target = teacher(x)
    opt.zero_grad()
    (student(x + 0.1) - target).square().mean().backward()
    opt.step()
"""
CENTERS = """
points = torch.randn(50, 4)
centers = nn.Parameter(points[:3])  #!
opt = torch.optim.SGD([centers], lr=0.1)
for step in range(3):
    loss = torch.cdist(points[torch.randint(0, 50, (16,))], centers).min(1).values.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ROWS = """
table, first = nn.Embedding(10, 4).requires_grad_(False), 7
rows = nn.Parameter(table.weight[first:])
opt = torch.optim.SGD([rows], lr=0.1)
for step in range(3):
    ids = torch.randint(0, 10, (8, 5))
    new = nn.functional.embedding((ids - first).clamp(min=0), rows)
    x = torch.where((ids >= first)[..., None], new, table(ids))
    opt.zero_grad()
    (x - x.mean(1, keepdim=True)).square().mean().backward()
    opt.step()
"""

WRONG = {
    "of data": LAYERS + "b.weight = nn.Parameter(a.weight.data)  #!\n" + TRAIN,
    "of a detached weight": LAYERS + "b.weight = nn.Parameter(a.weight.detach())  #!\n" + TRAIN,
    "of one start": LAYERS + "start = torch.randn(4, 4)\na.weight = nn.Parameter(start)\n"
    "b.weight = nn.Parameter(start)  #!\n" + TRAIN,
    "in a loop": "start = torch.eye(4)\nclass Layer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.weight = nn.Parameter(start)  #!\n    def forward(self, x):\n        return x @ self.weight\n"
    "a, b = Layer(), Layer()\n" + TRAIN,
    "a part of a frozen table": PROMPT,
    "a part of a table that no optimizer holds": PROMPT.replace(".requires_grad_(False)", "").replace(
        "weight[:3]", "weight.data[:3]"),
    "a part of a table that was trained": PROMPT.replace(".requires_grad_(False)", "").replace("prompt =", (
        "first = torch.optim.SGD(table.parameters(), lr=0.1)\nfor step in range(3):\n    first.zero_grad()\n"
        "    body(table(torch.arange(10))).square().mean().backward()\n    first.step()\n"
        "table.requires_grad_(False)\nprompt =")),
    "a part of the points": CENTERS,
    "a frozen teacher": TEACHER,
    "data of a frozen teacher": TEACHER.replace("student.weight = nn.Parameter(teacher.weight.data)", (
        "student.weight.data = teacher.weight.data")),
}  # fmt: skip
RIGHT = {
    "a copy of a part": PROMPT.replace("weight[:3]", "weight[:3].clone()"),
    "rows in the place of those of the table": PROMPT.replace("table(ids)", (
        "torch.where(ids.unsqueeze(2) < 0, prompt[0], table(ids))")),
    "chosen rows": PROMPT.replace("weight[:3]", "weight[torch.randint(0, 10, (3,))]"),
    "a part that replaces its table": PROMPT.replace("  #!", "\nlarge, table = table, nn.Embedding(10, 4)"),
    "a part beside the other part": PROMPT.replace("table(ids)", "table.weight[3:].expand(8, -1, -1)"),
    "a table that is kept": PROMPT.replace("table(ids)", "torch.randn(8, 5, 4)") + "    kept = table.weight.clone()\n",
    "a table that is read before the steps": PROMPT.replace(
        "for step", "words = table(torch.arange(5))\nfor step").replace("table(ids)", "words.expand(8, -1, -1)"),
    "rows that are trained in their table": ROWS,
    "all parts of one vector": """
flat = torch.randn(20)
weight, bias = nn.Parameter(flat[:16].view(4, 4)), nn.Parameter(flat[16:])
opt = torch.optim.SGD([weight, bias], lr=0.1)
for step in range(3):
    opt.zero_grad()
    y = torch.randn(8, 4) @ weight + bias
    (y / flat.norm()).square().mean().backward()
    opt.step()
""",
    "a view of a tensor that nothing else reads": CENTERS.replace("points[:3]", "points.view(25, 8)[:3, :4]").replace(
        "points[torch.randint(0, 50, (16,))]", "torch.randn(16, 4)"),
    "a sum with a mask of the table": PROMPT.replace("table(ids)", (
        "(table.weight != 0)[:5].expand(8, -1, -1).float()")),
    "one of many solutions": """
bank, w = torch.randn(6, 4), nn.Parameter(torch.zeros(4))
opt = torch.optim.SGD([w], lr=0.1)
for step in range(12):
    w.data = bank[step % 6]
    opt.zero_grad()
    ((torch.randn(8, 4) @ w).square().mean() + (w - bank.mean(0)).square().sum()).backward()
    opt.step()
""",
    "a table that a tied layer trains": """
table, head = nn.Embedding(10, 4).requires_grad_(False), nn.Linear(4, 10, bias=False)
head.weight = nn.Parameter(table.weight)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(3):
    ids = torch.randint(0, 10, (8,))
    opt.zero_grad()
    nn.functional.cross_entropy(head(table(ids)), ids.roll(1)).backward()
    opt.step()
""",
    "gradients of a part that are given by hand": """
table = nn.Embedding(10, 4)
rows = nn.Parameter(table.weight.data[7:])
opt = torch.optim.SGD([rows], lr=0.1)
for step in range(3):
    table.zero_grad()
    table(torch.randint(0, 10, (8,))).square().mean().backward()
    rows.grad = table.weight.grad[7:].clone()
    opt.step()
""",
    "a teacher with the values of the student": TEACHER.replace("teacher.weight.data", "teacher.weight.data.clone()"),
    "a frozen twin": TEACHER.replace("nn.Parameter(teacher.weight.data)  #!", "student.weight").replace(
        "student.weight = student.weight", "teacher.weight = nn.Parameter(student.weight.data, requires_grad=False)"),
    "two starts": LAYERS + TRAIN,
    "a copy": LAYERS + "b.weight = nn.Parameter(a.weight.detach().clone())\n" + TRAIN,
    "tied": LAYERS + "b.weight = a.weight\n" + TRAIN.replace(", *b.parameters()", ""),
    "other parts of one memory": LAYERS + "flat = torch.randn(8, 4)\na.weight = nn.Parameter(flat[:4])\n"
    "b.weight = nn.Parameter(flat[4:])\n" + TRAIN,
    "parts of one vector": LAYERS + "nn.utils.vector_to_parameters(torch.randn(32), [a.weight, b.weight])\n" + TRAIN,
    "parts of a vector that is stepped": LAYERS
    + "flat = nn.Parameter(torch.cat([a.weight.detach().flatten(), b.weight.detach().flatten()]))\n"
    "for n, p in enumerate([a.weight, b.weight]): p.data = flat.data[16 * n : 16 * n + 16].view_as(p)\n"
    + TRAIN.replace("[*a.parameters(), *b.parameters()]", "[flat]").replace(
        "    opt.step", "    flat.grad = torch.cat([a.weight.grad.flatten(), b.weight.grad.flatten()])\n    opt.step"),
    "one that no step changes": LAYERS + "b.weight = nn.Parameter(a.weight.data, requires_grad=False)\n"
    + TRAIN.replace(", *b.parameters()", ""),
    "one that is replaced": LAYERS + "old = a.weight\na.weight = nn.Parameter(a.weight.data)\n" + TRAIN,
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_two_parameters_in_one_memory(case: str, tmp_path: Path) -> None:
    found = [each for each in sentences(tmp_path, WRONG[case]) if WHAT in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(WRONG[case])]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_parameters(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
