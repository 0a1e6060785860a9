import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

NAME = "scanned_shapes"
REPAIR = ("            mine.lerp_(theirs, 1 - self.decay)\n",
          "            mine.lerp_(theirs, 1 - self.decay)\n"
          "        for mine, theirs in zip(self.net.buffers(), net.buffers()):\n            mine.copy_(theirs)\n")

bad, good = run(NAME), run(NAME, REPAIR)
for name, buffer in bad["average"].net.named_buffers():
    if name.endswith("running_mean") or name.endswith("num_batches_tracked"):
        assert (buffer == 0).all()          # statistics of the averaged net: those of a new layer
    else:
        assert (buffer == 1).all()
source = bad["net"].local[1]
assert source.running_mean.abs().max() > 1 and source.num_batches_tracked == bad["STEPS"]
assert rel(flat(good["net"]), flat(bad["net"])) == 0          # the training is the same
assert rel(flat(good["average"].net), flat(bad["average"].net)) == 0   # and so are the averaged weights
_, bad_accuracy = bad["evaluate"](bad["average"].net, *bad["held_out"])
_, good_accuracy = good["evaluate"](good["average"].net, *good["held_out"])
assert bad_accuracy < 0.4 and good_accuracy > 0.9, (bad_accuracy, good_accuracy)
print("proved", bad_accuracy, good_accuracy)
