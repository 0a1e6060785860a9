# ran to its end, exit code 0
print('\x1b[31mred\x1b[0m \x07\r\b \x9b2J \u202e [bold]x[/bold] [/]')
sys.stderr.write('\x1b]0;title\x07[red]')
