import asyncio, torch
async def work(n):
    x = torch.full((2,), float(n), requires_grad=True)
    await asyncio.sleep(0)
    (x * x).sum().backward()
    await asyncio.to_thread(x.grad.mul_, 2)
    return x.grad.tolist()
async def main():
    print(await asyncio.gather(*(work(n) for n in range(3))))
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(1)
    except TimeoutError:
        print("timeout")
asyncio.run(main())
