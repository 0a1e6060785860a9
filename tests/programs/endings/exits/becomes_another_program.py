# ended itself, exit code 3
# gap: the program closed the journal
time.sleep(1)
os.execv('/bin/sh', ['sh', '-c', 'exit 3'])
