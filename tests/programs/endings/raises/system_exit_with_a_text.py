# ended itself, exit code 1
raise SystemExit('a message')
