# ended with CancelledError, exit code 1
import asyncio
raise asyncio.CancelledError
