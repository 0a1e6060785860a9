import os
import signal

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(3)
for step in range(3):
    if dist.get_rank() == 1 and step == 1:
        x = x.view(3, 1)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x)  # waits_here
dist.destroy_process_group()
