"""A rank of stock Horovod, as far as its launcher sees one: it meets the others through the HTTP rendezvous that its environment
names, connects to each of them, and adds up numbers over these connections. Written from the public protocol; it uses neither our
package nor libhvd.so.

usage: stock_worker.py STEP...   each step is one of
  init            meet in the scopes global, local and cross; in an elastic job that was there before, ask for the place first
  world           print rank, size, local rank, local size, cross rank, cross size
  sum             add up rank + 1 over all ranks; prints the sum
  shutdown        close the connections
  place           ask for the place in an elastic job; prints the answer
  notices         say where to send word of hosts that are added, as elastic workers do
  env=NAME        print the variable
  lost            wait until a connection to another rank is lost
  sleep           until it is ended
  wait=FILE       wait until there is such a file
  first=STEP[;STEP...]   these steps, if the workers have not been started again
  stay            SIGTERM ends it no more
  exit=CODE       end with this code
  kill            end by SIGKILL
A step like 1:kill is for the process that was started as rank 1 only.
"""

import fcntl
import http.client
import os
import select
import signal
import socket
import struct
import sys
import time

NUMBERS = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
started_as = os.environ["HOROVOD_RANK"]
place = {name: int(os.environ["HOROVOD_" + name]) for name in NUMBERS}
host = os.environ["HOROVOD_HOSTNAME"]
was_there = False
meshes = {}


def say(line):
    os.write(1, (line + "\n").encode())


def ask(method, scope, key, body=None):
    """The code and the body of the answer."""
    server = http.client.HTTPConnection(
        os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]), timeout=120)
    server.request(method, "/%s/%s" % (scope, key), body)
    answer = server.getresponse()
    return answer.status, answer.read()


def own_address():
    interface = os.environ["HOROVOD_GLOO_IFACE"].encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket.fileno(), 0x8915, struct.pack("256s", interface[:15]))  # SIOCGIFADDR
    return socket.inet_ntoa(answer[20:24])


def receive(connection, count):
    received = b""
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            raise ConnectionError("another rank is gone")
        received += piece
    return received


def address_of(scope, key):
    give_up = time.monotonic() + float(os.environ.get("HOROVOD_GLOO_TIMEOUT_SECONDS") or 60)
    while True:
        code, body = ask("GET", scope, key)
        if code == 200:
            address, _, port = body.decode().rpartition(":")
            return address, int(port)
        assert code == 404, code
        if time.monotonic() > give_up:
            raise SystemExit("rank %s is missing in %s" % (key, scope))
        time.sleep(0.01)


def meet(scope, rank, size):
    """A connection to each other rank of the scope, by its rank in it."""
    listener = socket.create_server((own_address(), 0), backlog=size)
    code, _ = ask("PUT", scope, str(rank), "%s:%d" % listener.getsockname())
    assert code == 200, code
    connections = {}
    for other in range(rank):
        connections[other] = socket.create_connection(address_of(scope, str(other)), timeout=60)
        connections[other].sendall(struct.pack("i", rank))
    while len(connections) < size - 1:
        connection, _ = listener.accept()
        connections[struct.unpack("i", receive(connection, 4))[0]] = connection
    exchange(connections, 0)  # a barrier
    code, _ = ask("DELETE", scope, str(rank))
    assert code == 200, code
    return connections


def exchange(connections, number):
    for connection in connections.values():
        connection.sendall(struct.pack("i", number))
    return number + sum(struct.unpack("i", receive(connection, 4))[0] for connection in connections.values())


def init():
    global was_there
    if os.environ.get("HOROVOD_ELASTIC") == "1" and was_there:
        code, body = ask("GET", "rank_and_size", "%s:%d" % (host, place["LOCAL_RANK"]))
        assert code == 200, code
        place.update(zip(NUMBERS, map(int, body.split(b","))))
    was_there = True
    meshes["global"] = meet("global", place["RANK"], place["SIZE"])
    meshes["local"] = meet("local_" + host, place["LOCAL_RANK"], place["LOCAL_SIZE"])
    meshes["cross"] = meet("cross_%d" % place["LOCAL_RANK"], place["CROSS_RANK"], place["CROSS_SIZE"])


def shutdown():
    for mesh in meshes.values():
        for connection in mesh.values():
            connection.close()
    meshes.clear()


def run(step):
    step, _, value = step.partition("=")
    if step == "init":
        init()
    elif step == "world":
        say("world %d of %d local %d of %d cross %d of %d" % tuple(place[name] for name in NUMBERS))
    elif step == "sum":
        say("sum %d" % exchange(meshes["global"], place["RANK"] + 1))
        assert exchange(meshes["local"], 1) == place["LOCAL_SIZE"]
        assert exchange(meshes["cross"], 1) == place["CROSS_SIZE"]
    elif step == "shutdown":
        exchange(meshes["global"], 0)  # all ranks agree on it
        shutdown()
    elif step == "place":
        say("place %s" % ask("GET", "rank_and_size", "%s:%d" % (host, place["LOCAL_RANK"]))[1].decode())
    elif step == "notices":
        say("notices %d" % ask("PUT", "worker_addresses", "%s:%d" % (host, place["LOCAL_RANK"]), "gASVnot a pickle")[0])
    elif step == "env":
        say("%s=%s" % (value, os.environ.get(value)))
    elif step == "lost":
        select.select(list(meshes["global"].values()), [], [], 60)
        say("lost")
    elif step == "sleep":
        time.sleep(60)
    elif step == "wait":
        give_up = time.monotonic() + 60
        while not os.path.exists(value) and time.monotonic() < give_up:
            time.sleep(0.01)
    elif step == "first":
        for inner in value.split(";") if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else []:
            run(inner)
    elif step == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif step == "exit":
        sys.exit(int(value))
    elif step == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        raise SystemExit("unknown step " + step)


for text in sys.argv[1:]:
    who, colon, rest = text.partition(":")
    if colon and who.isdigit():
        if who == started_as:
            run(rest)
    else:
        run(text)
