import threading, torch
w, results = torch.ones(3, requires_grad=True), []

def work():
    results.append(w * 2)  # role: graph_built_here

with torch.no_grad():  # role: grad_mode_off_here
    t = threading.Thread(target=work)
    t.start()
    t.join()
assert results[0].requires_grad  # role: observed_here
print("silent", results[0].requires_grad)
