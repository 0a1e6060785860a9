# was stopped at its time limit by SIGTERM
# --timeout 12
thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
thread.start()
thread.join()
