import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("states.append(worker.state_dict())",
       "states.append({k: v.clone() for k, v in worker.state_dict().items()})")

wrong = run("clinic_rounds", capture=("federate",))
right = run("clinic_rounds", FIX, capture=("federate",))

states = wrong.locals["federate"]["states"]
assert len(states) == 5
for key in states[0]:
    assert len({s[key].data_ptr() for s in states}) == 1, key  # five entries, one memory: the worker's
worker = wrong.locals["federate"]["worker"].state_dict()
for key, value in wrong["server"].state_dict().items():  # the "average" is the model of the last clinic alone
    assert torch.allclose(value, worker[key], atol=1e-5), key

states = right.locals["federate"]["states"]
assert all(len({s[key].data_ptr() for s in states}) == 5 for key in states[0])
worker = right.locals["federate"]["worker"]
assert rel(flat(right["server"]), flat(worker)) > 0.05
sizes = right.locals["federate"]["sizes"]
for key, value in right["server"].state_dict().items():
    mean = sum(s[key] * n for s, n in zip(states, sizes)) / sum(sizes)
    assert torch.allclose(value, mean, atol=1e-5), key

print(wrong["history"][-1], right["history"][-1])
assert right["history"][-1] > wrong["history"][-1] + 0.1
