"""A name server for tests: says "no such name" until it is told otherwise, and notes who asks for what.

    dns_stub.py ADDRESS FOLDER SILENT_SECONDS NAME=ADDRESS ...

The names are known from SILENT_SECONDS after the first question for one of them. FOLDER/questions has a line per question.
"""

import pathlib
import socket
import struct
import sys
import time

NO_SUCH_NAME = 3
IPV4 = 1


def name_in(question):
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    return ".".join(labels), at + 1


def main(address, folder, seconds, *known):
    addresses = dict(entry.split("=") for entry in known)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, 53))
    notes = (pathlib.Path(folder) / "questions").open("w", buffering=1)
    first = None
    while True:
        question, peer = sock.recvfrom(512)
        name, end = name_in(question)
        kind = struct.unpack_from("!H", question, end)[0]
        notes.write(f"{peer[0]} {name} {kind}\n")
        found = addresses.get(name)
        if found and first is None:
            first = time.monotonic()
        there = found and time.monotonic() - first >= float(seconds)
        answer = b""
        if there and kind == IPV4:
            answer = struct.pack("!HHHIH", 0xC00C, IPV4, 1, 0, 4) + socket.inet_aton(found)
        flags = 0x8580 | (0 if there else NO_SUCH_NAME)
        head = question[:2] + struct.pack("!HHHHH", flags, 1, 1 if answer else 0, 0, 0)
        sock.sendto(head + question[12 : end + 4] + answer, peer)


if __name__ == "__main__":
    main(*sys.argv[1:])
