"""Checks what `--training` says about NumPy arrays that a line changes through a tensor."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
import numpy as np
rows = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
def train(batch):
    opt.zero_grad(); model(batch).square().mean().backward(); opt.step()
"""
TWICE = "for epoch in range(3):\n    for i in range(0, 8, 2):\n        train(torch.stack([item(i), item(i + 1)]))\n"
WRONG = {
    "noise on rows": START + "def item(i):\n    row = torch.from_numpy(rows[i])\n"
    "    row.add_(0.1 * torch.randn_like(row))  #!\n    return row\n" + TWICE,
    "a gain for rows, with as_tensor": START + "def item(i):\n    row = torch.as_tensor(rows[i])\n"
    "    row *= 1 + 0.2 * torch.rand(1)  #!\n    return row\n" + TWICE,
    "a scale each time": START + "def item(i):\n    return torch.from_numpy(rows[i]).mul_(0.5)  #!\n" + TWICE,
}
RIGHT = {
    "a copy": START + "def item(i):\n    return torch.from_numpy(rows[i]).clone().mul_(0.5)\n" + TWICE,
    "out of place": START + "def item(i):\n    return torch.from_numpy(rows[i]) * 0.5\n" + TWICE,
    "once, when it is read": START + "torch.from_numpy(rows).div_(2.0)\n"
    "def item(i):\n    return torch.from_numpy(rows[i])\n" + TWICE,
    "another array each time": START + "def item(i):\n    return torch.from_numpy(rows[[i]])[0].mul_(0.5)\n" + TWICE,
    "a buffer that NumPy fills": START + "buffer = np.zeros(4, np.float32)\ndef item(i):\n    buffer[:] = rows[i]\n"
    "    return torch.from_numpy(buffer) * 1.0\n" + TWICE,
    "a running mean in an array": START
    + "mean = np.zeros(4, np.float32)\ndef item(i):\n    row = torch.from_numpy(rows[i])\n"
    "    torch.from_numpy(mean).mul_(0.9).add_(0.1 * row)\n    return row - torch.from_numpy(mean)\n" + TWICE,
}  # fmt: skip
REPLAY = """\
state, memory = np.zeros(4, np.float32), []
for step in range(12):
    memory.append(torch.from_numpy(state))  #!
    state += rows[step % 8]
    if len(memory) > 4:
        train(torch.stack(memory[-4:]))
"""
EPISODES = """\
class Env:
    def __init__(self):
        self.state = np.zeros(4, np.float32)

    def step(self):
        self.state += rows[0]
        state = self.state
        return torch.from_numpy(state)  #!

env = Env()
for episode in range(6):
    seen = [env.step() for _ in range(6)]
    train(torch.stack(seen))
    del seen
"""
ARRAYS = (
    EPISODES.replace("    seen = [", "    env.state = np.zeros(4, np.float32)\n    seen = [")
    .replace("    del seen\n", "    kept.append(seen)\n")
    .replace("env = Env()", "env, kept = Env(), []")
)
KEPT = {
    "states of an episode": START + EPISODES,
    "states of a replay memory": START + REPLAY,
    "in a function": START + "def run():\n" + "".join(f"    {line}\n" for line in REPLAY.splitlines()) + "run()\n",
}
NEW = {
    "copies of states": START + REPLAY.replace("from_numpy(state)", "from_numpy(state.copy())"),
    "tensors of their own": START + REPLAY.replace("from_numpy(state)", "tensor(state)"),
    "another array each time": START + REPLAY.replace("state += rows[step % 8]", "state = state + rows[step % 8]"),
    "a part that keeps its values": START + "memory = []\nfor step in range(8):\n"
    "    memory.append(torch.from_numpy(rows[0]))\n    rows[1] += 1\n"
    "    train(torch.stack([torch.from_numpy(rows[1]), *memory[-3:]]))\n",
    "views of one array": START + "memory = [torch.from_numpy(row) for row in rows]\n"
    "for step in range(4):\n    train(torch.stack(memory))\n    rows *= 0.9\n",
}  # fmt: skip
WORDS = "shares memory with"


@pytest.mark.parametrize("name", WRONG)
def test_an_array_that_a_line_changes_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "16 of 16 times, a part that is read again has other values than before" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_usual_arrays_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


@pytest.mark.parametrize("name", KEPT)
def test_tensors_that_have_lost_their_values_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, KEPT[name]) if "and lose their values" in each.text)
    assert "`torch.from_numpy(state)` shares memory with an array that gets other values later" in found.text
    assert found.labels[0].span.line == marked(KEPT[name])


def test_several_arrays_of_one_line_are_one_sentence(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, START + ARRAYS) if "lose their values" in each.text)
    assert "shares memory with 6 arrays that get other values later: 30 tensors that were made on them" in found.text
    assert found.labels[0].span.line == marked(START + ARRAYS)


@pytest.mark.parametrize("name", NEW)
def test_tensors_with_values_of_their_own_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, NEW[name]) if "and lose their values" in each.text] == []


WALK = """\
import random
from collections import deque, namedtuple
import numpy as np
q = nn.Linear(3, 3)
opt = torch.optim.SGD(q.parameters(), lr=0.01)
class Env:
    def __init__(self):
        self.state = np.zeros(3, np.float32)
    def reset(self):
        self.state[:2] = np.random.uniform(-1, 1, 2)
        return self.state
    def step(self, action):
        self.state[1] += 0.1 * (action - 1)
        self.state[0] += self.state[1]
        return self.state, -abs(float(self.state[0]))
class Agent:
    def __init__(self):
        self.buffer, self.at = [None] * 32, 0
    def add(self, *entry):
        self.buffer[self.at % 32] = Entry(*entry)  #!
        self.at += 1
Entry = namedtuple("Entry", "s a r n")
env, memory, agent = Env(), deque(maxlen=100), Agent()
goal = np.zeros(3, np.float32)
obs = env.reset()
for step in range(90):
    new, reward = env.step(random.randrange(3))
    memory.append((obs, 1, reward, new))  #!
    obs = env.reset() if step % 10 == 9 else new
    if step >= 20:
        batch = random.sample(list(memory), 16)
        s, n = torch.FloatTensor(np.array([t[0] for t in batch])), torch.tensor(np.stack([t[3] for t in batch]))
        opt.zero_grad(); (q(s) - q(n).detach()).square().mean().backward(); opt.step()
"""
ADDED = "memory.append((obs, 1, reward, new))  #!"
RING = WALK.replace(ADDED, "agent.add(obs, 1, reward, new)").replace("list(memory)", "list(filter(None, agent.buffer))")
REBOUND = "self.state = np.random.uniform(-1, 1, 3).astype(np.float32)"
ONE = {
    "one state array": WALK.replace("Entry(*entry)  #!", "Entry(*entry)"),
    "an array for each episode": WALK.replace("Entry(*entry)  #!", "Entry(*entry)").replace(
        "self.state[:2] = np.random.uniform(-1, 1, 2)", REBOUND
    ),
    "a ring of named entries": RING,
    "views in dicts": WALK.replace("Entry(*entry)  #!", "Entry(*entry)")
    .replace("(obs, 1, reward, new)", '{0: obs[:], 1: {}, 2: torch.tensor(reward), 3: new[:]}'),
}  # fmt: skip
LISTS = (
    WALK.replace("Entry(*entry)  #!", "Entry(*entry)")
    .replace("env, memory", "states, nexts = [], []\nenv, memory")
    .replace(ADDED, "states.append(obs)  #!\n    nexts.append(new)")
    .replace("list(memory)", "list(zip(states, [1] * len(states), [1] * len(states), nexts))")
)
ONE["two lists"] = LISTS
ONE["two lists of a dict"] = (
    LISTS.replace("states, nexts = [], []", 'kept = {"s": [], "n": []}')
    .replace("nexts.", 'kept["n"].')
    .replace("states.", 'kept["s"].')
    .replace("states", 'kept["s"]')
    .replace("nexts", 'kept["n"]')
)
OWN = {
    "copies": WALK.replace("(obs, 1, reward, new)", "(obs.copy(), 1, reward, new.copy())"),
    "new states": WALK.replace("self.state[1] +=", "self.state = self.state.copy()\n        self.state[1] +="),
    "a goal that stays": WALK.replace("(obs, 1, reward, new)", "(obs.copy(), 1, reward, new.copy(), goal, goal)"),
    "a goal for each episode, in a memory that is emptied": WALK.replace(
        ADDED, "if step % 30 == 20:\n        memory.clear(); goal += 1\n    "
        "memory.append((obs.copy(), 1, reward, new.copy(), goal, goal))").replace("step >= 20", "len(memory) >= 16"),
    "entries that a line refills": WALK.replace("random.sample(list(memory), 16)", "rows")
    .replace("env, memory", "rows = [(np.zeros(3, np.float32),) * 4] * 20\nenv, memory").replace(
        ADDED, "rows[0][0][:] = obs"
    ),
    "two lists of copies": LISTS.replace("(obs)", "(obs.copy())").replace("(new)", "(new.copy())"),
    "a goal for each episode, in two lists that are emptied": LISTS.replace("(obs)", "(goal)").replace(
        "(new)", "(goal)").replace("    obs = env", "    if step % 30 == 20:\n        goal += 1\n        "
        "states.clear(); nexts.clear()\n    obs = env").replace("step >= 20", "len(states) >= 16"),
    "one array beside copies": WALK.replace("(obs, 1, reward, new)", "(obs.copy(), goal, 1, new.copy())").replace(
        "    obs = env", "    goal += 1\n    obs = env"),
}  # fmt: skip
NO_COPIES = "keeps no copies"


@pytest.mark.parametrize("name", ONE)
def test_entries_that_hold_one_array_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, ONE[name]) if NO_COPIES in each.text)
    assert "entries hold one" in found.text or "entries are one array" in found.text
    assert found.labels[0].span.line == marked(ONE[name])


@pytest.mark.parametrize("name", OWN)
def test_entries_with_arrays_of_their_own_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, OWN[name]) if NO_COPIES in each.text] == []


def test_a_look_at_entries_runs_no_code_of_the_program(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    loud = (
        "heard = []\n"
        "class Row(tuple):\n    __iter__ = lambda self: heard.append('iter') or tuple.__iter__(self)\n"
        "    __len__ = lambda self: heard.append('len') or tuple.__len__(self)\n"
        "class Key:\n    __str__ = lambda self: heard.append('str') or 'key'\n"
        "class Proxy:\n    __class__ = property(lambda self: heard.append('class') or dict)\n"
        "mixed = [{Key(): 1} for _ in range(20)] + [Proxy() for _ in range(20)]\n"
    )
    added = "memory.append(Row((obs, 1, reward, new)))  #!"
    walk = WALK.replace("Entry(*entry)  #!", "Entry(*entry)").replace(ADDED, added)
    script = loud + walk + f"open({str(heard)!r}, 'w').write(' '.join(heard))\n"
    assert [each.labels[0].span.line for each in sentences(tmp_path, script) if NO_COPIES in each.text] == [
        marked(script)
    ]
    assert heard.read_text() == ""
