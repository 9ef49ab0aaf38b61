"""A rank that writes into the job page where it may not (runtime/segment/SEGMENT.md), as a stray pointer would.

usage: page_worker.py each                 rank 0 inverts each 4-byte word of the header and of the heads of both blocks,
                                           each in a generation of its own, and asks the agent for memory after each
       page_worker.py tell OFFSET VALUE    rank 0 writes this word; both wait for the agent to break the generation
       page_worker.py die OFFSET VALUE     rank 1 writes this word and dies; rank 0 waits for the agent to break the generation
OFFSET may be "alive": the word in which rank 1 shows that it lives.
"""

import mmap
import os
import select
import signal
import struct
import sys

from link_worker import ALLOCATE, BROKEN, GENERATION, GOODBYE, JOIN, LAYOUT, SEGMENT, Link

RANK = int(os.environ["HOROVOD_RANK"])
HEADER = 192  # the facts and the line of `broken`
BLOCK, STRIDE_AT, ALIVE, HEAD = 4096, 40, 192, 384
PATIENCE_S = 20


class Page:
    def __init__(self, link):
        link.send(JOIN)
        kind, body, fds = link.receive()
        while kind in (LAYOUT, BROKEN):  # broken: of the generation before, which this rank has left
            kind, body, fds = link.receive()
        assert kind == GENERATION, kind
        self.generation, size = struct.unpack_from("<QQ", body)
        self.memory = mmap.mmap(fds[0], size)
        os.close(fds[0])
        self.stride = struct.unpack_from("<Q", self.memory, STRIDE_AT)[0]

    def offset(self, text):
        return BLOCK + self.stride + ALIVE if text == "alive" else int(text)

    def write(self, offset, value):
        struct.pack_into("<I", self.memory, offset, value)

    def invert(self, offset):
        self.write(offset, struct.unpack_from("<I", self.memory, offset)[0] ^ 0xFFFFFFFF)


def each(link):
    offsets = [*range(0, HEADER, 4), *range(BLOCK, BLOCK + HEAD, 4)]
    for offset in offsets:
        page = Page(link)
        if RANK == 0:
            page.invert(offset)
            if offset >= BLOCK:
                page.invert(offset + page.stride)
        link.send(ALLOCATE, struct.pack("<Q", 4096))
        kind, _, fds = link.receive()
        while kind != SEGMENT:  # an agent that is gone closes the link, and this process ends
            assert kind == BROKEN, kind
            kind, _, fds = link.receive()
        os.close(fds[0])
        link.send(GOODBYE, struct.pack("<QQ", page.generation, 0))
    print("words:", len(offsets), flush=True)


def one(link, writer, offset, value):
    page = Page(link)
    if RANK == writer:
        page.write(page.offset(offset), int(value, 0))
        if writer == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    told = ""
    if select.select([link.socket], [], [], PATIENCE_S)[0]:
        kind, body, _ = link.receive()
        told = body[12:].decode() if kind == BROKEN else f"message {kind}"
    print("told:", told, flush=True)
    sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "each":
        each(Link())
    else:
        one(Link(), 1 if sys.argv[1] == "die" else 0, *sys.argv[2:])
