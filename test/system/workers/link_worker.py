"""A worker that speaks the link protocol (runtime/net/PROTOCOL.md) without libhvd.so.

usage: link_worker.py STEP...   each step is one of
  join            ask for an epoch and wait for it; prints what came
  broken          wait for a broken message; prints its reason
  goodbye         leave the epoch
  exit=N          end with this code
  kill            end by SIGKILL
  sleep           wait to be ended
  pause=SECONDS   wait so long
  wait-file=PATH  wait until the file exists
  alloc=N         allocate a data segment of N bytes; prints its id and size
  fetch=N         fetch segment N
A step like 1:kill is for rank 1 only.
"""

import array
import os
import signal
import socket
import struct
import sys
import time

HELLO, JOIN, GOODBYE, ALLOCATE, FETCH, FREE, EPOCH, BROKEN, SEGMENT, REFUSED = range(10)


def text(data):
    return struct.pack("<I", len(data)) + data


class Link:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect("\0" + os.environ["HVD_AGENT"])
        slot, key = int(os.environ["HVD_SLOT"]), os.environ["HVD_JOB_KEY"].encode()
        self.send(HELLO, struct.pack("<III", 1, slot, os.getpid()) + text(key))
        self.epoch = 0

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
        kind, body, fds = self.receive()
        if kind == EPOCH:
            self.epoch, size, *world = struct.unpack("<QQIIIIIIB", body)
            page = os.fstat(fds[0]).st_size
            say(f"epoch {self.epoch} rank {world[0]} size {world[1]} page {page == size}")
        else:
            self.print_broken(kind, body)

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
            link.send(GOODBYE, struct.pack("<Q", link.epoch))
        elif step == "exit":
            os._exit(int(value))
        elif step == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif step == "sleep":
            time.sleep(600)
        elif step == "pause":
            time.sleep(float(value))
        elif step == "wait-file":
            while not os.path.exists(value):
                time.sleep(0.01)
        elif step == "second-link":
            link2 = Link()
            link2.print_broken(*link2.receive()[:2])
        elif step == "alloc":
            link.send(ALLOCATE, struct.pack("<Q", int(value)))
            link.segment()
        elif step == "fetch":
            link.send(FETCH, struct.pack("<I", int(value)))
            link.segment()
        else:
            raise SystemExit(f"unknown step {step}")


main()
