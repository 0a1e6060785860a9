# ended itself, exit code 6
thread = threading.Thread(target=lambda: os._exit(6))
thread.start(); thread.join()
