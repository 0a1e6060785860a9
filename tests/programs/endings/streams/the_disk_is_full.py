# ran to its end, exit code 0
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can grow, as on a full disk
time.sleep(1)
print(torch.ones(1), y.tolist())
