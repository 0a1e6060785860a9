# was stopped at its time limit, exit code -15
# --timeout 12
lock = threading.Lock()
lock.acquire(); lock.acquire()
