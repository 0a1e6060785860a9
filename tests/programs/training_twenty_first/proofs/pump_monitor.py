import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

r = run("pump_monitor")
old = "        step = state[\"step\"]\n"
fixed = run("pump_monitor", (old, old + "        average = WeightAverage(model)\n"))
full = run("pump_monitor",
           ("\"optimizer\": optimizer.state_dict(), ", "\"optimizer\": optimizer.state_dict(), \"ema\": average.model.state_dict(), "),
           (old, old + "        average.model.load_state_dict(state[\"ema\"])\n"))
for name, q in (("wrong", r), ("reseeded", fixed), ("saved", full)):
    print(name, "error", q["normal_error"].mean().item(), "auroc", q["score"], "distance", rel(flat(q["average"].model), flat(q["model"])),
          "raw auroc", q["auroc"](q["window_errors"](q["model"], q["test_normal"]), q["window_errors"](q["model"], q["test_faulty"])))
for q in (fixed, full):
    assert q["normal_error"].mean() < 0.8 * r["normal_error"].mean()
    assert q["score"] > r["score"] + 0.02
    assert rel(flat(q["average"].model), flat(q["model"])) < 0.5 * rel(flat(r["average"].model), flat(r["model"]))
