import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fixes = [("        self.model.train()\n        self.set_layer_decay()\n", "        self.model.train()\n"),
         ("        self.layers = [model.out, model.hidden, model.embed]\n", "        self.layers = [model.out, model.hidden, model.embed]\n        self.set_layer_decay()\n")]
bad, good = run("layer_decay_hooks"), run("layer_decay_hooks", *fixes)


def factor(r):
    model = r["model"]
    words, labels = r["make_corpus"](100, 1)
    w = model.hidden.weight
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(words), labels).backward()
    hooked = w.grad.clone()
    copy = r["DocNet"]()
    copy.load_state_dict(model.state_dict())
    torch.nn.functional.cross_entropy(copy(words), labels).backward()
    return (hooked.norm() / copy.hidden.weight.grad.norm()).item(), len(w._backward_hooks)


print(factor(bad), factor(good), "loss", bad["loss"], good["loss"], "acc", bad["acc"], good["acc"], "shift", bad["shift"], good["shift"])
assert factor(bad)[0] < 0.01 and factor(bad)[1] == 16
assert abs(factor(good)[0] - 0.6) < 1e-3 and factor(good)[1] == 1
assert bad["loss"] > 1.3 * good["loss"] and bad["acc"] < good["acc"]
