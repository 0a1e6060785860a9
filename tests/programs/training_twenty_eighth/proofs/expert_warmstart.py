import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ('agent.load_state_dict(checkpoint["model"], strict=False)',
       'agent.load_state_dict({k.removeprefix("driver."): v for k, v in checkpoint["model"].items()}, strict=False)')
SPY = ("    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)\n",
       "    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)\n    at_start = {k: v.clone() for k, v in agent.state_dict().items()}\n")
FRESH = ("    agent = DriverWithValue()\n", "    agent = DriverWithValue()\n    fresh = {k: v.clone() for k, v in agent.state_dict().items()}\n")
wrong = run("expert_warmstart", SPY, FRESH, capture=("improve", "clone"))
right = run("expert_warmstart", FIX, SPY, FRESH, capture=("improve", "clone"))
for result, loaded in ((wrong, False), (right, True)):
    seen = result.locals["improve"]
    cloned = result.locals["clone"]["cloner"].driver.state_dict()
    for key, value in cloned.items():
        assert torch.equal(seen["at_start"][key], value if loaded else seen["fresh"][key]), key
        assert torch.equal(seen["at_start"][key], value) == loaded, key
print(wrong["curve"][0], right["curve"][0], wrong["curve"][-1], right["curve"][-1])
assert right["curve"][0] > wrong["curve"][0] + 10   # nothing of the expert is there at the start
assert right["curve"][-1] > wrong["curve"][-1] + 10
