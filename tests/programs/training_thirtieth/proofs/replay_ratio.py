import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

torch.set_num_threads(1)
KEEP = ("        self.target.load_state_dict(self.online.state_dict())",
        "        self.drawn = self.online.head.weight.detach().clone(), self.online.head.bias.detach().clone()\n"
        "        self.target.load_state_dict(self.online.state_dict())")
REPAIR = ("        self.online.head = nn.Linear(hidden, len(PUSHES))",
          "        self.online.head = nn.Linear(hidden, len(PUSHES))\n"
          "        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=2e-3)")

written = run("replay_ratio", KEEP)
repaired = run("replay_ratio", KEEP, REPAIR)

for program, trains in ((written, False), (repaired, True)):
    agent = program["agent"]
    weight, bias = agent.drawn
    head = agent.online.head
    assert head.weight.grad is not None and head.weight.grad.abs().sum() > 0
    assert in_optimizer(head.weight, agent.optimizer) == trains and in_optimizer(head.bias, agent.optimizer) == trains
    assert torch.equal(head.weight.detach(), weight) != trains and torch.equal(head.bias.detach(), bias) != trains
    assert in_optimizer(agent.online.trunk[0].weight, agent.optimizer)

# What the optimizer holds instead belongs to no module any more.
inside = {id(p) for p in written["agent"].online.parameters()}
held = [p for g in written["agent"].optimizer.param_groups for p in g["params"]]
assert sum(id(p) not in inside for p in held) == 2
print(written.output); print(repaired.output)
