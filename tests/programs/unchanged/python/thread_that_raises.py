import threading, torch
def work():
    x = torch.ones(2)
    x.backward()
t = threading.Thread(target=work, name="worker")
t.start()
t.join()
print("main goes on")
