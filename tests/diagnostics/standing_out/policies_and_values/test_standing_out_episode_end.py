"""Sums that go on through the ends of episodes, and time limits that count as ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch

    class Env:
        def reset(self):
            self.t = 0
            return torch.randn(3)
        def step(self, action):
            self.t += 1
            terminated, truncated = float(torch.rand(())) > 0.8, self.t >= 5
            return torch.randn(3), 1.0, terminated, truncated

    def collect(env, value, rows):
        s = env.reset()
        for _ in range(24):
            s2, r, terminated, truncated = env.step(0)
            done = terminated or truncated
            rows.append((s, r, s2, {kept}))
            s = env.reset() if done else s2

    def targets(value, rows):
        s, r, s2, ends = zip(*rows)
        ends, r = torch.tensor(ends).float(), torch.tensor(r)
        with torch.no_grad():
            v, v2 = value(torch.stack(s)).squeeze(1), value(torch.stack(s2)).squeeze(1)
        {target}
        return torch.stack(s), y

    value, rows = torch.nn.Linear(3, 1), []
    opt = torch.optim.SGD(value.parameters(), lr=0.1)
    collect(Env(), value, rows)
    x, y = targets(value, rows)
    loss = (value(x).squeeze(1) - y).pow(2).mean()
    loss.backward()
    opt.step()
"""
BOOTSTRAP = "y = r + 0.9 * (1 - ends) * v2"
SUM = """advantage, running = torch.zeros(24), 0.0
        for t in reversed(range(24)):
            delta = r[t] + 0.9 * v2[t] * (1 - ends[t]) - v[t]
            running = delta + 0.9 * 0.95 * {mask}running
            advantage[t] = running
        y = advantage + v"""
RETURNS = """y, running = [], 0.0
        for reward, done in zip(reversed(r), reversed(ends)):
            running = reward + 0.9 * running{mask}
            y.append(running)
        y = torch.stack(y[::-1])"""
BEFORE = """errors = r + 0.9 * (1 - ends) * v2 - v
        y, running = v.clone(), 0.0
        for t in reversed(range(24)):
            running = errors[t] + 0.8 * (1 - ends[t]) * running
            y[t] += running"""
WRONG = {
    "a trace": ("terminated", SUM.format(mask=""), "masks another term of the loop", 31),
    "returns": ("terminated", RETURNS.format(mask=""), "no line of the loop reads `done`", 30),
    "a time limit": ("done", BOOTSTRAP, "counts a time limit as an end", 19),
    "a time limit in place": ("terminated or truncated", BOOTSTRAP, "counts a time limit as an end", 20),
}
RIGHT = {
    "a masked trace": ("terminated", SUM.format(mask="(1 - ends[t]) * ")),
    "one flag in a rollout": ("done", SUM.format(mask="(1 - ends[t]) * ")),
    "each episode alone": (
        "terminated",
        SUM.format(mask="")
        .replace("\n        for", "\n        for _ in r[:1]:\n          for", 1)
        .replace("\n            ", "\n              "),
    ),
    "a mask on a line of its own": (
        "terminated",
        SUM.format(mask="m * ").replace("delta = r", "m = 1 - ends[t]\n            delta = r"),
    ),
    "a sum or the step alone": (
        "terminated",
        SUM.format(mask="").replace("0.95 * running", "0.95 * running if not ends[t] else delta"),
    ),
    "differences before the loop": ("done", BEFORE),
    "differences for a function": (
        "done",
        """def add_up(x, factors):
            out, running = x.clone(), 0.0
            for t in reversed(range(len(x))):
                out[t] = running = x[t] + factors[t] * running
            return out
        errors = r + 0.9 * (1 - ends) * v2 - v
        y = v + add_up(errors / 2, 0.8 * (1 - ends))""",
    ),
    "differences that are turned": (
        "done",
        """errors = (r + 0.9 * (1 - ends) * v2 - v)
        y = v + errors.flip(0).mul(0.8).cumsum(0).flip(0)""",
    ),
    "masked returns": ("done", RETURNS.format(mask=" * (1 - done)")),
    "only an end": ("terminated", BOOTSTRAP),
    "both are kept": ("terminated, truncated", BOOTSTRAP.replace("(1 - ends)", "(1 - ends[:, 0])")),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_lost_end_is_named(kind: str, tmp_path: Path) -> None:
    kept, target, words, line = WRONG[kind]
    kept = f"({kept})" if "," in kept else kept
    [found], _ = said(tmp_path, SCRIPT.format(kept=kept, target=target), "episode", "time limit")
    assert words in found.text
    assert found.labels[0].span.line == line


@pytest.mark.parametrize("kind", RIGHT)
def test_a_kept_end_is_no_news(kind: str, tmp_path: Path) -> None:
    kept, target = RIGHT[kind]
    kept = f"({kept})" if "," in kept else kept
    assert said(tmp_path, SCRIPT.format(kept=kept, target=target), "episode", "time limit")[0] == []


def test_a_limit_that_never_comes_is_no_news(tmp_path: Path) -> None:
    script = SCRIPT.format(kept="done", target=BOOTSTRAP).replace(
        "1.0, terminated, truncated", "1.0, terminated, False"
    )
    assert said(tmp_path, script, "episode", "time limit")[0] == []


EACH = """
    import torch

    class Env:
        def reset(self):
            self.t = 0
            return torch.zeros(3)
        def step(self, action):
            self.t += 1
            return torch.randn(3), 1.0, self.t >= 5, {}

    class Agent:
        def __init__(self):
            self.value = torch.nn.Linear(3, 1)
            self.opt = torch.optim.SGD(self.value.parameters(), lr=0.1)
        def gae(self, r, v, dones):
            advantages, running = [], 0.0
            for t in reversed(range(len(r))):
                delta = r[t] + 0.9 * v[t + 1] * (1 - dones[t]) - v[t]
                running = delta + 0.9 * 0.95 * running
                advantages.insert(0, running)
            return torch.tensor(advantages)
        def learn(self, memory):
            s, r, dones = zip(*memory)
            v = self.value(torch.stack(s)).squeeze(1)
            for _ in range(2):
                y = self.gae(r, v.detach().tolist() + [0.0], dones) + v.detach()
            (v - y).pow(2).mean().backward()
            self.opt.step()

    env, agent, memory = Env(), Agent(), []
    s = env.reset()
    for _ in range(20):
        s2, r, done, _ = env.step(0)
        memory.append((s, r, int(done)))
        s = s2
        if done:
            agent.learn(memory)
            memory, s = [], env.reset()
"""


def test_a_sum_of_a_caller_in_the_loop_over_episodes_is_no_news(tmp_path: Path) -> None:
    assert said(tmp_path, EACH, "episode")[0] == []
    later = EACH.replace(
        "            agent.learn(memory)\n            memory, s = [], env.reset()", "            s = env.reset()"
    )
    assert len(said(tmp_path, later + "    agent.learn(memory)\n", "episode")[0]) == 1
