"""Owns the server that every rate is compared with: it reads a POST's body, and always answers the same.

What it takes is what HTTP costs on this machine at this moment, with the same library, loop and client.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop
from aiohttp import web

START_S = 20.0
ANSWER = {"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1/8", "gateway": "10.0.0.254"}], "dns": {}}


async def answer(request: web.Request) -> web.Response:
    """The same, always."""
    await request.read()
    return web.json_response(ANSWER)


async def serve(path: str) -> None:
    """Serve on a unix socket until killed."""
    app = web.Application()
    app.router.add_post("/cni/v1/add", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.UnixSite(runner, path).start()
    await asyncio.Event().wait()


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The server as a process of its own; where it listens."""
    path = folder / "constant.sock"
    with subprocess.Popen([sys.executable, "-m", "bench.constant", str(path)]) as process:
        try:
            deadline_s = time.monotonic() + START_S
            while not path.exists():
                if time.monotonic() > deadline_s or process.poll() is not None:
                    raise RuntimeError("the constant server did not start")
                time.sleep(0.02)
            yield f"unix:{path}"
        finally:
            process.kill()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
