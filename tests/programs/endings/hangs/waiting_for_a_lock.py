# was stopped at its time limit by SIGTERM
# --timeout 12
lock = threading.Lock()
lock.acquire(); lock.acquire()
