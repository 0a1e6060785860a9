# ran to its end, exit code 0
sys.stdout.write('no newline')
