"""What is told of a server's health waits for no thread that others have."""

import anyio
from anyio import to_thread

from app.serve.aside import MOST, Aside


def test_it_is_answered_while_all_other_threads_are_taken():
    async def asked() -> list[int]:
        others = to_thread.current_default_thread_limiter()
        for _ in range(int(others.total_tokens)):
            others.acquire_on_behalf_of_nowait(object())
        found, aside = [], Aside()

        async def ask(number: int) -> None:
            found.append(await aside.run(lambda: number))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(3 * MOST):
                    tasks.start_soon(ask, number)
        return sorted(found)

    assert anyio.run(asked) == list(range(3 * MOST))
