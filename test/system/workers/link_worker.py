"""A worker that speaks the link protocol (runtime/net/PROTOCOL.md) without libhvd.so.

usage: link_worker.py STEP...   each step is one of
  join            ask for a generation and wait for it; prints what came
  broken          wait for a broken message; prints its reason
  goodbye         leave the generation
  exit=N          end with this code
  hang-at-exit=N  deaf to SIGTERM, end with this code but for an exit handler that hangs
  kill            end by SIGKILL
  sleep           wait to be ended
  pause=SECONDS   wait so long
  wait-file=PATH  wait until the file exists
  touch=PATH      make the file
  alloc=N         allocate a data segment of N bytes; prints its id and size
  fetch=N         fetch segment N
  world           print where the ranks of the generation are, and where to listen
  put=KEY=VALUE   put an entry into the directory of the generation
  get=KEY         wait for an entry; prints its value, or why there is none
A step like 1:kill is for rank 1 only.
"""

import array
import atexit
import os
import signal
import socket
import struct
import sys
import time

HELLO, JOIN, GOODBYE, ALLOCATE, FETCH, FREE, GENERATION, BROKEN, SEGMENT, REFUSED, PUT, GET, VALUE, LAYOUT = range(14)
LINK = 5  # the version of the link
WORLD = "<QQIIIIIIB"


def text(data):
    return struct.pack("<I", len(data)) + data


def take_text(data):
    """The text at the front, and the rest after it."""
    end = 4 + struct.unpack("<I", data[:4])[0]
    return data[4:end].decode(), data[end:]


class Link:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect("\0" + os.environ["HVD_AGENT"])
        slot, key = int(os.environ["HVD_SLOT"]), os.environ["HVD_JOB_KEY"].encode()
        hello = struct.pack("<II", slot, os.getpid()) + text(key) + struct.pack("<II", 0, 0)
        version = int(os.environ.get("LINK_VERSION", LINK))
        if version != LINK:
            hello = hello[:version]  # another release says something else
        self.send(HELLO, struct.pack("<I", version) + hello)
        self.generation = 0
        self.runs = []
        self.listen = ""

    def send(self, kind, payload=b""):
        self.socket.send(bytes([kind]) + payload)

    def receive(self):
        fds = array.array("i")
        data, control, _, _ = self.socket.recvmsg(4096, socket.CMSG_LEN(4))
        for level, kind, value in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(value[:4])
        if not data:
            say("closed")
            sys.exit(9)
        return data[0], data[1:], list(fds)

    def join(self):
        self.send(JOIN)
        self.runs = []
        kind, body, fds = self.receive()
        while kind == LAYOUT:
            self.runs += struct.iter_unpack("<IIII", body[10:])
            kind, body, fds = self.receive()
        if kind == GENERATION:
            self.generation, size, *world = struct.unpack_from(WORLD, body)
            self.listen = self.take_listen(body[struct.calcsize(WORLD) :])
            page = os.fstat(fds[0]).st_size
            say(f"generation {self.generation} rank {world[0]} size {world[1]} page {page == size}")
        else:
            self.print_broken(kind, body)

    def take_listen(self, rest):
        key, rest = take_text(rest)
        addresses, rest = rest[0], rest[1:]
        listen = []
        for _ in range(addresses):
            address, rest = take_text(rest)
            listen.append(address)
        same = key == os.environ["HVD_JOB_KEY"]
        ports = struct.unpack("<HH", rest[:4])  # a byte follows: whether the world is elastic
        return f"key {same} listen {','.join(listen)} ports {ports}"

    def get(self, key):
        self.send(GET, struct.pack("<Q", self.generation) + text(key.encode()))
        kind, body, _ = self.receive()
        if kind != VALUE:
            return self.print_broken(kind, body)
        name, rest = take_text(body[8:])
        say(f"{name}={take_text(rest)[0]}")

    def broken(self):
        kind, body, _ = self.receive()
        self.print_broken(kind, body)

    def print_broken(self, kind, body):
        if kind == BROKEN:
            say(f"broken {struct.unpack('<Q', body[:8])[0]}: {body[12:].decode()}")
        elif kind == REFUSED:
            say(f"refused: {body[4:].decode()}")
            sys.exit(8)
        else:
            say(f"unexpected {kind}")

    def segment(self):
        kind, body, fds = self.receive()
        number, size = struct.unpack("<IQ", body[:12])
        real = os.fstat(fds[0]).st_size if fds else -1
        say(f"segment {number} bytes {size} real {real} error '{body[16:].decode()}'")


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main():
    link = Link()
    rank = os.environ["HOROVOD_RANK"]
    for step in sys.argv[1:]:
        who, colon, rest = step.partition(":")
        if colon:
            if who != rank:
                continue
            step = rest
        step, _, value = step.partition("=")
        if step == "join":
            link.join()
        elif step == "broken":
            link.broken()
        elif step == "goodbye":
            link.send(GOODBYE, struct.pack("<QQ", link.generation, 0))
        elif step == "exit":
            os._exit(int(value))
        elif step == "hang-at-exit":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            atexit.register(time.sleep, 600)
            sys.exit(int(value))
        elif step == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif step == "sleep":
            time.sleep(600)
        elif step == "pause":
            time.sleep(float(value))
        elif step == "wait-file":
            while not os.path.exists(value):
                time.sleep(0.01)
        elif step == "touch":
            open(value, "w").close()
        elif step == "second-link":
            link2 = Link()
            link2.print_broken(*link2.receive()[:2])
        elif step == "alloc":
            link.send(ALLOCATE, struct.pack("<Q", int(value)))
            link.segment()
        elif step == "world":
            say(f"runs {link.runs} {link.listen}")
        elif step == "put":
            entry = [text(part.encode()) for part in value.split("=")]
            link.send(PUT, struct.pack("<Q", link.generation) + b"".join(entry))
        elif step == "get":
            link.get(value)
        elif step == "fetch":
            link.send(FETCH, struct.pack("<I", int(value)))
            link.segment()
        else:
            raise SystemExit(f"unknown step {step}")


if __name__ == "__main__":
    main()
