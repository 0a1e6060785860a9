import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

COPY = ("    weights_before = net.state_dict()", "    weights_before = copy.deepcopy(net.state_dict())")
STILL = ("META_LR = 0.25", "META_LR = 0.0")

written = run("sine_family")
written_still = run("sine_family", STILL)
repaired = run("sine_family", COPY)
repaired_still = run("sine_family", COPY, STILL)
torch.manual_seed(7)
start = flat(written["Regressor"]())

# As written the outer step size changes nothing, and at zero the network moves all the same.
assert rel(flat(written["net"]), flat(written_still["net"])) < 1e-3
assert rel(flat(written_still["net"]), start) > 0.1
# Repaired, at zero it stays where it was, and at 0.25 it goes elsewhere.
assert rel(flat(repaired_still["net"]), start) == 0.0
assert rel(flat(repaired["net"]), start) > 0.05
assert rel(flat(written["net"]), flat(repaired["net"])) > 0.05

# One meta update: the old weights are the new ones.
seen = run("sine_family", capture=("meta_update",)).locals["meta_update"]
for name, value in seen["weights_before"].items():
    assert value.data_ptr() == seen["weights_after"][name].data_ptr()
print("errors after adapting:", written["after"], repaired["after"])
