# was stopped at its time limit by SIGTERM
# --timeout 12
threading.Thread(target=time.sleep, args=(60,)).start()
