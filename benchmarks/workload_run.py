"""Runs a workload some times: `workload_run.py NAME TIMES`."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.workloads import WORKLOADS

torch.manual_seed(0)
run = WORKLOADS[sys.argv[1]]()
for _ in range(int(sys.argv[2])):
    run()
