# ended with ExceptionGroup, exit code 1
import asyncio
async def work(number):
    await asyncio.sleep(0)
    return torch.ones(2) @ torch.ones(number)
async def main():
    async with asyncio.TaskGroup() as tasks:
        for number in (3, 4):
            tasks.create_task(work(number))
asyncio.run(main())
