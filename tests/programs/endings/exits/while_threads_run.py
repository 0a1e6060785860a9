# ended itself, exit code 3
for _ in range(3):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
sys.exit(3)
