# ran to its end, exit code 0
import atexit
atexit.register(lambda: torch.ones(2) @ torch.ones(3))
