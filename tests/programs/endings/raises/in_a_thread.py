# ran to its end, exit code 0
thread = threading.Thread(target=lambda: torch.ones(2) @ torch.ones(3))
thread.start(); thread.join()
