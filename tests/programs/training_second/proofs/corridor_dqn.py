import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

a = run("corridor_dqn", capture=["main"]).locals["main"]["agent"]
b = run("corridor_dqn", ("slow.data = fast.data", "slow.data.copy_(fast.data)"), capture=["main"]).locals["main"]["agent"]
for agent, shared in ((a, True), (b, False)):
    pairs = list(zip(agent.target.parameters(), agent.online.parameters()))
    assert all((t.data_ptr() == o.data_ptr()) == shared for t, o in pairs)
    agent.updates = 1
    before = [t.clone() for t, _ in pairs]
    agent.learn()
    assert all(torch.equal(x, t) != shared for x, (t, _) in zip(before, pairs))
print("proved: corridor_dqn")
