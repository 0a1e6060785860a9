# was stopped at its time limit, exit code -15
# --timeout 12
threading.Thread(target=time.sleep, args=(60,)).start()
