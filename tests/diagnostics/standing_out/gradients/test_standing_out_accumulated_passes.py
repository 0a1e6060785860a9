"""Says how passes add up before a step where they do not count alike, and is silent about a usual accumulation."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.training_programs import train

NET = """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data, classes = torch.randn(24, 3), torch.randint(0, 2, (24,))
batches = list(zip(data.split(4), classes.split(4)))
criterion = nn.CrossEntropyLoss()
"""

UNDIVIDED = {
    "a counter decides": """
for epoch in range(2):
    for i, (x, y) in enumerate(batches):
        loss = criterion(net(x), y)
        loss.backward()  # here
        if (i + 1) % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    "parts of a batch": """
for epoch in range(3):
    optimizer.zero_grad()
    for part, labels in zip(data.chunk(3), classes.chunk(3)):
        criterion(net(part), labels).backward()  # here
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
""",
    "slices": """
for epoch in range(3):
    optimizer.zero_grad()
    for start in range(0, 24, 8):
        out = net(data[start:start + 8])
        loss = (out - 1.0).square().mean()
        loss.backward()  # here
    optimizer.step()
""",
    "a while loop": """
done = 0
while done < 6:
    x, y = batches[done]
    loss = F.mse_loss(net(x).sum(1), y.float())
    loss.backward()  # here
    done += 1
    if done % 3:
        continue
    if done:
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
""",
}
SHARES = """
head, targets = nn.Linear(3, 1), torch.randn(16, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for epoch in range(3):
    optimizer.zero_grad()
    for part in (slice(0, 12), slice(12, 16)):
        n = targets[part].shape[0]
        error = (head(data[part]) - targets[part]).square()
        LOSS.backward()
    optimizer.step()
"""
UNEQUAL = {
    "one scale for all parts": (
        "\nscale = 0.25\nerrors = torch.tensor(2.0)\n"
        + SHARES.replace("LOSS.backward()", ("(error * scale / errors).mean().backward()  # here")).replace(
            "range(3)", "range(1)"
        ),
        "over 12 and 4 elements: an element of the smallest counts 3 times as much",
    ),
    "a short last part": (
        """
for epoch in range(2):
    optimizer.zero_grad()
    parts = list(zip(data[:20].split(6), classes[:20].split(6)))
    for x, y in parts:
        loss = criterion(net(x), y) / len(parts)
        loss.backward()  # here
    optimizer.step()
""",
        "over 6, 6, 6 and 2 elements: an element of the smallest counts 3 times as much",
    ),
    "padding that is ignored": (
        """
classes[2:4] = -100
for epoch in range(2):
    for i, (x, y) in enumerate(batches):
        loss = 0.5 * criterion(net(x), y)
        loss.backward()  # here
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()
""",
        "over 2 and 4 elements: an element of the smallest counts 2 times as much",
    ),
    "means by hand": (
        """
for epoch in range(2):
    optimizer.zero_grad()
    for start, end in ((0, 16), (16, 24)):
        (net(data[start:end]).abs().mean() / 2).backward()  # here
    optimizer.step()
""",
        "over 32 and 16 elements",
    ),
    "texts of several lengths": (
        """
for epoch in range(2):
    texts = [torch.randn(n, 3) for n in ((9, 3, 9) if epoch else (3, 9, 9))]
    optimizer.zero_grad()
    for text in texts:
        loss = F.smooth_l1_loss(net(text), torch.zeros(len(text), 2)) * (1 / 3)
        loss.backward()  # here
    optimizer.step()
""",
        "an element of the smallest counts 3 times as much",
    ),
}
DISCARDED = {
    "a clearing between": """
for i, (x, y) in enumerate(batches):
    loss = criterion(net(x), y) / 2
    loss.backward()  # here
    if i == 2:
        optimizer.zero_grad()
    if i % 2:
        optimizer.step()
        optimizer.zero_grad()
""",
    "an epoch begins with a clearing": """
for epoch in range(3):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(batches[:5]):
        (criterion(net(x), y) / 2).backward()  # here
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()
""",
    "a module clears": """
for i, (x, y) in enumerate(batches):
    if i == 4:
        net.zero_grad()
    (criterion(net(x), y) / 2).backward()  # here
    if i in (1, 2, 5):
        optimizer.step()
        net.zero_grad()
""",
    "by hand": """
for i, (x, y) in enumerate(batches):
    (criterion(net(x), y) / 3).backward()  # here
    if i == 1:
        for p in net.parameters():
            p.grad = None
    if i in (2, 5):
        optimizer.step()
        optimizer.zero_grad()
""",
    "momentum by hand": """
slots = [(p, torch.zeros_like(p)) for p in net.parameters()]
def clear():
    for p, _ in slots:
        if p.grad is not None:
            p.grad.zero_()
for epoch in range(3):
    for part, labels in zip(data.chunk(3), classes.chunk(3)):
        clear()
        (criterion(net(part), labels) / 3).backward()  # here
    with torch.no_grad():
        for p, v in slots:
            v.mul_(0.9).add_(p.grad)
            p.sub_(0.1 * v)
""",
    "an update of all at once": """
for epoch in range(3):
    for part, labels in zip(data.chunk(3), classes.chunk(3)):
        net.zero_grad()
        (criterion(net(part), labels) / 3).backward()  # here
    params = list(net.parameters())
    with torch.no_grad():
        torch._foreach_add_(params, [p.grad for p in params], alpha=-0.1)
""",
}
RIGHT = {
    "by hand, a hook keeps the gradients of another pass": """
kept = []
net[0].weight.register_hook(kept.append)
for x, y in batches:
    for part in (x, x + 0.01):
        net.zero_grad()
        criterion(net(part), y).backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
""",
    "by hand, a warm-up of the machine": """
for i, (x, y) in enumerate(batches):
    net.zero_grad()
    criterion(net(x), y).backward()
    if i > 1:
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
""",
    "by hand, cleared after each update": """
for part, labels in zip(data.chunk(3), classes.chunk(3)):
    criterion(net(part), labels).backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
""",
    "by hand, with gradients of the parts that are kept": """
for epoch in range(3):
    kept = []
    for part, labels in zip(data.chunk(3), classes.chunk(3)):
        net.zero_grad()
        criterion(net(part), labels).backward()
        kept.append([p.grad for p in net.parameters()])
    with torch.no_grad():
        for p, *parts in zip(net.parameters(), *kept):
            p -= 0.1 * torch.stack(parts).median(0).values + 0.1 * p.grad
""",
    "by hand, with the norm of each part": """
for epoch in range(3):
    for part, labels in (*zip(data.chunk(3), classes.chunk(3)), (data, classes)):
        net.zero_grad()
        criterion(net(part), labels).backward()
        norm = net[0].weight.grad.norm()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
""",
    "by hand, a search along a line": """
for epoch in range(3):
    for rate in (1.0, 0.1, 0.01):
        net.zero_grad()
        loss = criterion(net(data), classes)
        loss.backward()
        if loss.item() > 100:
            continue
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
""",
    "a last part that is a bit shorter": """
for epoch in range(2):
    optimizer.zero_grad()
    for x, y in zip(data[:22].split(8), classes[:22].split(8)):
        (criterion(net(x), y) / 3).backward()
    optimizer.step()
""",
    "one pass for a step": """
for x, y in batches:
    optimizer.zero_grad()
    criterion(net(x), y).backward()
    optimizer.step()
""",
    "sets that count alike": """
sizes = {"photo": 16, "sketch": 4, "art": 8}
for epoch in range(3):
    optimizer.zero_grad()
    for name, n in sizes.items():
        (criterion(net(torch.randn(n, 3)), torch.randint(0, 2, (n,))) / len(sizes)).backward()
    optimizer.step()
""",
    "groups of a batch that count alike": """
group = torch.arange(24) // 20
for epoch in range(3):
    optimizer.zero_grad()
    for k in range(2):
        (criterion(net(data[group == k]), classes[group == k]) / 2).backward()
    optimizer.step()
""",
    "several scales": """
for epoch in range(3):
    optimizer.zero_grad()
    for scale in (1, 2):
        (0.5 * net(data[::2].repeat(scale, 1)).square().mean()).backward()
    optimizer.step()
""",
    "a rate that is divided": """
k = 3
optimizer = torch.optim.SGD(net.parameters(), lr=0.1 / k)
for i, (x, y) in enumerate(batches):
    criterion(net(x), y).backward()
    if (i + 1) % k == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "episodes, by RMSprop": """
optimizer = torch.optim.RMSprop(net.parameters(), lr=0.01)
for i in range(8):
    actions = torch.distributions.Categorical(logits=net(torch.randn(5 + i % 4, 3)))
    chosen = actions.sample()
    (-(actions.log_prob(chosen) * torch.randn(len(chosen))).mean()).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "means of one sample": """
for i in range(8):
    criterion(net(data[i : i + 1]), classes[i : i + 1]).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "divided": """
for epoch in range(2):
    for i, (x, y) in enumerate(batches):
        (criterion(net(x), y) / 3).backward()
        if (i + 1) % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    "multiplied": """
for epoch in range(2):
    optimizer.zero_grad()
    for x, y in batches:
        (criterion(net(x), y) * (1 / 6)).backward()
    optimizer.step()
""",
    "weighted by size": """
for epoch in range(2):
    optimizer.zero_grad()
    for x, y in zip(data.split(10), classes.split(10)):
        (criterion(net(x), y) * len(x) / 24).backward()
    optimizer.step()
""",
    "sums divided by the whole": """
criterion = nn.CrossEntropyLoss(reduction="sum")
for epoch in range(2):
    optimizer.zero_grad()
    for x, y in zip(data.split(10), classes.split(10)):
        (criterion(net(x), y) / 24).backward()
    optimizer.step()
""",
    "divided by hooks": """
for p in net.parameters():
    p.register_hook(lambda g: g / 3)
for epoch in range(3):
    optimizer.zero_grad()
    for part, labels in zip(data.chunk(3), classes.chunk(3)):
        criterion(net(part), labels).backward()
    optimizer.step()
""",
    "divided afterwards": """
for epoch in range(2):
    optimizer.zero_grad()
    for x, y in batches:
        criterion(net(x), y).backward()
    for p in net.parameters():
        p.grad /= len(batches)
    optimizer.step()
""",
    "a gradient of its own": """
for epoch in range(2):
    optimizer.zero_grad()
    for x, y in batches:
        criterion(net(x), y).backward(torch.tensor(1 / 6))
    optimizer.step()
""",
    "losses of two tasks": """
other = nn.Linear(3, 2)
for epoch in range(2):
    optimizer.zero_grad()
    for task in (net, lambda x: net(x) + other(x)):
        loss = criterion(task(torch.randn(4, 3)), classes[:4])
        loss.backward()
    optimizer.step()
""",
    "real and fake, by a function": """
def judge(x, label):
    loss = criterion(net(x), torch.full((len(x),), label))
    loss.backward()

for epoch in range(2):
    optimizer.zero_grad()
    judge(data[:8], 0)
    judge(data[8:16], 1)
    optimizer.step()
""",
    "a weight for each part, as a tensor": SHARES.replace("LOSS", "(error * torch.full((n, 1), n / 16)).mean()"),
    "a weight for each part, by ones": SHARES.replace("LOSS", "(torch.ones(n, 1) * (n / 16) * error).mean()"),
    "a weight for each part, as a number": SHARES.replace("LOSS", "(error * (n / 16)).mean()"),
    "a weight for each part, of both sides": SHARES.replace(
        "LOSS", ("nn.functional.mse_loss(head(data[part]) * (n / 16) ** 0.5, targets[part] * (n / 16) ** 0.5)")
    ),
    "weights of classes": """
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.1, 5.0]))
for epoch in range(2):
    optimizer.zero_grad()
    for x, y in zip(data.split(8), (torch.zeros(8).long(), torch.ones(8).long(), classes[:8])):
        (criterion(net(x), y) / 3).backward()
    optimizer.step()
""",
    "bad batches are skipped": """
for i, (x, y) in enumerate(batches):
    loss = criterion(net(x), y)
    loss.backward()
    if i == 2 and loss.item() < 100:
        optimizer.zero_grad()
        continue
    optimizer.step()
    optimizer.zero_grad()
""",
    "gradients that are measured": """
for i, (x, y) in enumerate(batches):
    criterion(net(x), y).backward()
    if i == 3:
        print(net[0].weight.grad.norm() * 0 == 1, end="")
    else:
        optimizer.step()
    optimizer.zero_grad()
""",
    "a pass to warm up": """
criterion(net(data[:4]), classes[:4]).backward()
optimizer.zero_grad()
for x, y in batches:
    criterion(net(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "two nets against each other": """
judge = nn.Linear(2, 1)
second = torch.optim.SGD(judge.parameters(), lr=0.1)
for x, y in batches:
    second.zero_grad()
    (judge(net(x).detach()).mean() - judge(torch.ones(4, 2)).mean()).backward()
    second.step()
    optimizer.zero_grad()
    (-judge(net(x))).mean().backward()
    optimizer.step()
""",
}
LEFT_TO_NEXT = {
    "a number of the batch": """
for epoch in range(3):
    for i, (x, y) in enumerate(batches[:5]):
        loss = criterion(net(x), y) / 3
        loss.backward()
        if (i + 1) % 3 == 0:  # here
            optimizer.step()
            optimizer.zero_grad()
""",
    "a count, and a function that decides": """
def micro_step(x, y, waiting):
    (criterion(net(x), y) * 0.25).backward()
    if waiting == 4:  # here
        optimizer.step()
        for p in net.parameters():
            p.grad = None
    return waiting % 4 + 1
for epoch in range(4):
    waiting = 1
    for x, y in batches[:6]:
        waiting = micro_step(x, y, waiting)
""",
}
ALL_USED_ONCE = {
    "the rest goes with the last group": """
for epoch in range(3):
    for i, (x, y) in enumerate(batches[:5]):
        (criterion(net(x), y) / 2).backward()
        if i in (1, 4):
            optimizer.step()
            optimizer.zero_grad()
""",
    "a count over all epochs": """
for step in range(24):
    x, y = batches[step % 5]
    (criterion(net(x), y) / 3).backward()
    if (step + 1) % 3 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "larger groups later": """
for size in (3, 3, 3, 5, 5, 5):
    for x, y in batches[:size]:
        (criterion(net(x), y) / size).backward()
    if size:
        optimizer.step()
        optimizer.zero_grad()
""",
}


@pytest.mark.parametrize("name", LEFT_TO_NEXT)
def test_passes_that_are_left_to_the_next_round(tmp_path: Path, name: str) -> None:
    ran = train(tmp_path, NET + LEFT_TO_NEXT[name])
    (found,) = ran.sentences("carried_passes")
    assert "2 passes of a round are left to the next round" in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", ALL_USED_ONCE)
def test_groups_of_several_sizes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert train(tmp_path, NET + ALL_USED_ONCE[name]).sentences("carried_passes") == []


@pytest.mark.parametrize("name", UNDIVIDED)
def test_means_that_are_added_up(tmp_path: Path, name: str) -> None:
    ran = train(tmp_path, NET + UNDIVIDED[name])
    (found,) = ran.sentences("accumulated_passes")
    assert "3 backward passes add up before a step, each of a mean, and no loss is divided by 3" in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", UNEQUAL)
def test_means_over_unequal_numbers(tmp_path: Path, name: str) -> None:
    body, words = UNEQUAL[name]
    ran = train(tmp_path, NET + body)
    (found,) = ran.sentences("accumulated_passes")
    assert words in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", DISCARDED)
def test_passes_that_no_step_uses(tmp_path: Path, name: str) -> None:
    ran = train(tmp_path, NET + DISCARDED[name])
    (found,) = ran.sentences("accumulated_passes")
    assert "backward passes are cleared before a step uses them" in found.text
    assert found.labels[0].span.line == ran.line("here")


@pytest.mark.parametrize("name", RIGHT)
def test_other_programs_are_left_alone(tmp_path: Path, name: str) -> None:
    assert train(tmp_path, NET + RIGHT[name]).sentences("accumulated_passes") == []
