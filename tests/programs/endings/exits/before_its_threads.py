# ended itself, exit code 2
def work():
    time.sleep(0.5)
    print("thread", (x * 3).sum().item())
threading.Thread(target=work).start()
sys.exit(2)
