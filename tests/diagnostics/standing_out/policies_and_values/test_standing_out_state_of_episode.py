"""Recurrent states that a loop carries from one episode into the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    class Env:
        def reset(self):
            self.x, self.t = torch.randn(1, 3), 0
            return self.x
        def step(self, action):
            self.x, self.t = torch.randn(1, 3), self.t + 1
            return self.x, float(action), self.t > 3
    cell, head = torch.nn.GRUCell(3, 5), torch.nn.Linear(5, 2)
    opt = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.1)
    def act(x, memory):
        memory = cell(x, memory)
        return torch.distributions.Categorical(logits=head(memory)), memory
    def act_first(x, memory, fresh):
        return act(x, memory * (1.0 - fresh))
    def act_by(x, memory):
        return act(x, memory * (x[:, :1] > 0))
    class Note:
        over = False
        def mark(self, over):
            self.over = over
        def clear(self, memory):
            return memory * (1.0 - float(self.over))
    env, note = Env(), Note()
    obs, memory, done, scale = env.reset(), torch.zeros(1, 5), False, 1.0
    def decay(x, scale):
        return x * scale, 0.99 * scale
    for _ in range(3):
        log_ps, rewards = [], []
        memory = memory.detach()
{steps}
        loss = -(torch.cat(log_ps) * sum(rewards)).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
ROLLOUT = """\
        for t in range(10):
            dist, memory = act(obs, memory)
            a = dist.sample()
            log_ps.append(dist.log_prob(a))
            obs, reward, done = env.step(a)
            rewards.append(reward)
            if done:
                obs = env.reset()
"""
EPISODE = (
    ROLLOUT.replace("for t in range(10)", "while not done")
    .replace("            if done:\n                obs = env.reset()\n", "")
    .replace("        while", "        obs, done = env.reset(), False\n        while", 1)
)
RESET = "                obs = env.reset()"
WRONG = {
    "a rollout": ROLLOUT,
    "episodes": EPISODE,
    "kept, too": ROLLOUT.replace("rewards.append(reward)", "rewards.append(reward); log_ps[-1:] = [log_ps[-1]]"),
}
RIGHT = {
    "set back": ROLLOUT.replace(RESET, "                obs, memory = env.reset(), torch.zeros(1, 5)"),
    "multiplied": ROLLOUT.replace("act(obs, memory)", "act(obs, memory * (1.0 - float(done)))"),
    "set back for each episode": EPISODE.replace(
        "env.reset(), False", "env.reset(), False; memory = torch.zeros(1, 5)"
    ),
    "the loop ends": ROLLOUT.replace(RESET, RESET + "; memory = torch.zeros(1, 5); break"),
    "told of the end": ROLLOUT.replace("act(obs, memory)", "act(obs + float(done), memory)"),
    "a part set to zero": ROLLOUT.replace(
        RESET,
        "                obs, memory = env.reset(), memory.clone()\n                for i in 0,: memory[i].zero_()",
    ),
    "an item set to zero": EPISODE.replace("env.reset(), False", "env.reset(), False; memory[0].zero_()"),
    "a model told of the end": ROLLOUT.replace(
        "rewards.append(reward)", "rewards.append(reward); note.mark(done)"
    ).replace("act(obs, memory)", "act(obs, note.clear(memory))"),
    "told of its age": "        age = 0\n"
    + ROLLOUT.replace("act(obs, memory)", "act_first(obs, memory, float(age == 0)); age += 1").replace(
        RESET, "                obs, age = env.reset(), 0"
    ),
    "an age in the observation": "        age = 0\n"
    + ROLLOUT.replace("act(obs, memory)", "act_by(torch.cat([obs[:, 1:], torch.full((1, 1), age)], 1), memory)")
    .replace(RESET, "                obs, age = env.reset(), -1")
    .replace("            if done", "            age += 1\n            if done"),
    "a model that reads the first step": ROLLOUT.replace("act(obs, memory)", "act_by(obs, memory)"),
    "told of a result": "        gain = 0.0\n"
    + ROLLOUT.replace("act(obs, memory)", "act(torch.cat([obs[:, 1:], torch.full((1, 1), gain)], 1), memory)")
    .replace("reward,", "gain,")
    .replace("append(reward)", "append(gain)"),
    "set before each rollout": "        memory = torch.zeros(1, 5)\n" + ROLLOUT.replace("range(10)", "range(4)"),
    "set by the function of each rollout": """\
        def roll_out(obs):
            memory = torch.zeros(1, 5)
            for t in range(4):
                dist, memory = act(obs, memory)
                a = dist.sample()
                log_ps.append(dist.log_prob(a))
                obs, reward, done = env.step(a)
                rewards.append(reward)
                if done:
                    obs = env.reset()
            return obs
        obs = roll_out(obs)
""",
    "another value": ROLLOUT.replace(
        "dist, memory = act(obs, memory)", ("y, scale = decay(obs, scale); dist, _ = act(y, torch.zeros(1, 5))")
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_state_of_the_episode_before_is_named(tmp_path: Path, name: str) -> None:
    found, _ = said(tmp_path, SCRIPT.format(steps=WRONG[name]), "state of the episode before")
    assert len(found) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_a_state_of_its_own_episode_is_not(tmp_path: Path, name: str) -> None:
    assert not said(tmp_path, SCRIPT.format(steps=RIGHT[name]), "state of the episode before")[0]
