import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

watch = ("        with torch.no_grad():\n            soft",
         "        modes.append(self.teacher.training)\n        with torch.no_grad():\n            soft")
start = ("source_x, source_y =", "modes = []\nsource_x, source_y =")
before = ("distiller = Distiller(", "first = {k: v.clone() for k, v in teacher.state_dict().items()}\ndistiller = Distiller(")
repair = ("    distiller.train()\n", "    distiller.student.train()\n")
made = run("sensor_distill", watch, start, before)
fixed = run("sensor_distill", watch, start, before, repair)
assert all(made["modes"]) and len(made["modes"]) == 72  # the teacher labels in train mode, at every step
assert not any(fixed["modes"])
drift = lambda r: max(rel(v.float(), r["first"][k].float()) for k, v in r["teacher"].state_dict().items())
print(drift(made), drift(fixed))
assert drift(made) > 0.1 and drift(fixed) == 0.0  # the fixed teacher changes
x = made["device_x"][:64]
made["teacher"].train()
with torch.no_grad():
    a, b = made["teacher"](x), made["teacher"](x)
    c = fixed["teacher"].eval()(x)
print(rel(a, b), rel(a, c))
assert rel(a, b) > 0.1 and rel(a, c) > 0.1  # its labels for the same windows differ from call to call
assert rel(flat(made["distiller"].student), flat(fixed["distiller"].student)) > 0.01
