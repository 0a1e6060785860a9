import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

wrong = run("ward_fedavg")
server, clients = wrong["server"], wrong["client_models"]
bn, cbn = server.features[0], [c.features[0] for c in clients]
print("server input norm: mean", bn.running_mean.item(), "var", bn.running_var.item(), "batches", bn.num_batches_tracked.item())
print("clients: mean", [b.running_mean.item() for b in cbn], "var", [b.running_var.item() for b in cbn])
assert bn.running_mean.item() == 0 and bn.running_var.item() == 1 and bn.num_batches_tracked.item() == 0
fixed = run("ward_fedavg", ("        param.copy_(sum(w * c[name] for w, c in zip(weights, clients)))\n",
    "        param.copy_(sum(w * c[name] for w, c in zip(weights, clients)))\n"
    "    stats = [dict(m.named_buffers()) for m in client_models]\n"
    "    for name, buf in server_model.named_buffers():\n"
    "        if buf.is_floating_point():\n"
    "            buf.copy_(sum(w * s[name] for w, s in zip(weights, stats)))\n"))
print("server accuracy", wrong["server_acc"], "with averaged statistics", fixed["server_acc"])
assert fixed["server_acc"] > wrong["server_acc"] + 0.2
