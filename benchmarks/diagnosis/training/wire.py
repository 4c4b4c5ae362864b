"""A slow network between the processes of a job: `main([coordinator's port, processes, links, seconds, file])`.

Gloo's processes tell one another over the coordinator where they listen. This process stands between each of them and
the coordinator and puts addresses of its own in place of those of the slow links; what comes there it hands on, each
piece `seconds` after it came, as a longer wire would. `links`: pairs of ranks, or none for all. The ports for the
processes are written to `file`; when this process is told to end, how much it held up, too.

Gloo lets the process with the smaller address wait for the other, so an address is replaced by one that compares alike.
"""

import asyncio
import itertools
import json
import re
import socket
import time
from pathlib import Path

from reference.train.worker import die_with_launcher

HOST = "127.0.0.1"
ADDRESS = re.compile(rb"\x02\x00(..)(\x7f\x00\x00\x01\x00{8})", re.DOTALL)
"""An IPv4 address of the loopback as Gloo hands it round: family, port, address, zeros."""


class Wire:
    def __init__(self, port: int, links: list[tuple[int, int]], seconds: float):
        self.port, self.links, self.seconds = port, links, seconds
        self.owner: dict[bytes, int] = {}  # whose port it is, as its two bytes
        self.own: dict[int, bytes] = {}
        self.stand_in: dict[tuple[int, bytes], bytes] = {}
        self.links_used: set[tuple[int, int]] = set()
        self.pieces = 0
        self.kept: list[asyncio.AbstractServer] = []

    async def serve(self, rank: int) -> int:
        """A stand-in for the coordinator, for one process; its port."""

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection(HOST, self.port)
            await asyncio.gather(self._up(reader, back, rank), self._down(there, writer, rank))

        server = await asyncio.start_server(meet, HOST, 0)
        self.kept.append(server)
        return server.sockets[0].getsockname()[1]

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rank: int) -> None:
        while data := await reader.read(1 << 16):
            for port, _ in ADDRESS.findall(data):
                self.owner[port], self.own[rank] = rank, port
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rank: int) -> None:
        while data := await reader.read(1 << 16):
            for port, rest in set(ADDRESS.findall(data)):
                peer = self.owner.get(port)
                if peer is None or peer == rank or not self._slow(rank, peer):
                    continue
                if (rank, port) not in self.stand_in:
                    self.stand_in[rank, port] = await self._relay(rank, peer, port)
                data = data.replace(b"\x02\x00" + port + rest, b"\x02\x00" + self.stand_in[rank, port] + rest)
            writer.write(data)
            await writer.drain()
        writer.close()

    def _slow(self, a: int, b: int) -> bool:
        return not self.links or (min(a, b), max(a, b)) in self.links

    async def _relay(self, rank: int, peer: int, port: bytes) -> bytes:
        """A listener that hands on to `port`; its own port, which compares with the rank's as `port` does."""

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.links_used.add((min(rank, peer), max(rank, peer)))
            there, back = await asyncio.open_connection(HOST, int.from_bytes(port, "big"))
            for stream in (writer, back):
                stream.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.gather(self._later(reader, back), self._later(there, writer))

        mine = self.own.get(rank, port)
        for _ in range(200):
            server = await asyncio.start_server(meet, HOST, 0)
            taken = server.sockets[0].getsockname()[1].to_bytes(2, "big")
            # Gloo compares ports as they lie in memory, in network order read as the machine's own
            same = (_number(taken) > _number(mine)) == (_number(port) > _number(mine))
            if same and (taken[0] > mine[0]) == (port[0] > mine[0]):
                self.kept.append(server)
                return taken
            server.close()
        raise RuntimeError("no port was found that compares as the one that it stands for")

    async def _later(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hands each piece on so many seconds after it came; pieces overtake none, and do not add up."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def send() -> None:
            while True:
                due, data = await queue.get()
                if not data:
                    break
                await asyncio.sleep(max(due - time.monotonic(), 0))
                self.pieces += 1
                writer.write(data)
                await writer.drain()
            writer.close()

        sending = asyncio.ensure_future(send())
        while data := await reader.read(1 << 18):
            queue.put_nowait((time.monotonic() + self.seconds, data))
        queue.put_nowait((0.0, b""))
        await sending


def _number(port: bytes) -> int:
    return int.from_bytes(port, "little")


def main(argv: list) -> None:
    port, processes, links, seconds, out = argv
    die_with_launcher()
    wire = Wire(int(port), [(min(a, b), max(a, b)) for a, b in links], float(seconds))

    async def run() -> None:
        ports = [await wire.serve(rank) for rank in range(int(processes))]
        for beat in itertools.count():
            told = {"ports": ports, "links": sorted(wire.links_used), "pieces": wire.pieces, "beat": beat}
            Path(f"{out}.partial").write_text(json.dumps(told))
            Path(f"{out}.partial").rename(out)
            await asyncio.sleep(0.2)

    asyncio.run(run())
