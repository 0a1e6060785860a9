import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = [("self.prior_loc = self.loc.detach()", "self.prior_loc = self.loc.detach().clone()"),
       ("self.prior_rho = self.rho.detach()", "self.prior_rho = self.rho.detach().clone()")]

wrong, fixed = run("stream_posterior"), run("stream_posterior", *FIX)
print(wrong.output, fixed.output, sep="\n")
for program, same in ((wrong, True), (fixed, False)):
    layer = program["model"].output
    assert (layer.prior_loc.data_ptr() == layer.loc.data_ptr()) == same
    assert (layer.prior_rho.data_ptr() == layer.rho.data_ptr()) == same
    # the KL term vanishes on every later day, whatever the parameters do
    for day in program["days"][1:]:
        assert (abs(day["loss"] - day["fit"]) < 1e-5) == same, day
    # and has no gradient after the posterior has moved
    x, y = program["source"].records(60)
    program["take_in"](program["model"], x, y, steps=20)
    layer.zero_grad()
    layer.kl().backward()
    assert (flat_grad(layer).abs().max().item() < 1e-4) == same
bad, good = wrong["days"], fixed["days"]
assert good[-1]["nats"] < good[0]["nats"] - 0.05  # the repaired run gets better with the data
assert bad[-1]["nats"] > good[-1]["nats"] + 0.2
assert bad[-1]["accuracy"] < good[-1]["accuracy"]
