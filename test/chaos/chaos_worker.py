"""A rank that is injured, or injures itself, where it is ordered to. Uses the package and libhvd.so, but no framework.

usage: chaos_worker.py FOLDER            says "ready", waits for FOLDER/orders, then lives a short life in a world
       chaos_worker.py FOLDER elastic    counts in hvd.elastic.run until FOLDER/finish exists; rank 0 says its last commit
                                         in FOLDER/progress

The orders are JSON: {"rank": R or "all", "phase": where, "way": how, "more": a number}. The phases and ways are those of reach()
and die(). A failure that is not ordered is printed, and the process ends with code 3.
"""

import atexit
import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time

sys.path[:0] = os.environ["PYTHONPATH"].split(":")
from horovod.common import _library, elastic, objects, process_sets  # noqa: E402
from horovod.common.basics import HorovodBasics  # noqa: E402

hvd = HorovodBasics()
folder = sys.argv[1]
rank = int(os.environ["HOROVOD_RANK"])
_library.lib()
ITEMS = 12  # of a step of the elastic job


def say(line):
    os.write(1, (line + "\n").encode())


def add_up(values, name="sum"):
    array = (ctypes.c_int64 * len(values))(*values)
    request = _library.Request(_library.ALLREDUCE, name, ((_library.INT64, (len(values),)),))
    error = _library.wait(request.submit(ctypes.addressof(array), ctypes.addressof(array)))
    if error is not None:
        raise error
    return list(array)


def add_up_and_check():
    assert add_up([hvd.rank() + 1]) == [hvd.size() * (hvd.size() + 1) // 2]


def await_orders():
    while True:
        try:
            with open(os.path.join(folder, "orders")) as file:
                return json.load(file)
        except OSError:
            time.sleep(0.005)


# ---- how it ends


def leave_a_daemon():
    """A process in a session of its own that no longer has the environment, the descriptors or the parent of this one."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.makedirs(os.path.join(folder, "daemons"), exist_ok=True)
            with open(os.path.join(folder, "daemons", str(os.getpid())), "w"):
                pass
            os.closerange(0, 64)
            os.execve("/bin/sleep", ["sleep", "6000"], {})
        os._exit(0)
    os.wait()
    while not os.path.exists(os.path.join(folder, "daemons")) or not os.listdir(os.path.join(folder, "daemons")):
        time.sleep(0.001)


def write_for_ever():
    while True:
        os.write(1, b"out of a flood\n" * 64)
        os.write(2, b"err of a flood\n" * 64)


def die(way, more):
    if way.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, way))
        time.sleep(600)
    elif way == "_exit":
        os._exit(more)
    elif way == "exit":
        sys.exit(more)
    elif way == "a long message":
        raise RuntimeError("begin " + "x" * more + " end")
    elif way == "control characters":
        raise RuntimeError("begin \x1b[2J\x1b[3A\r\x07\x08\x9b31m\x7f\x1b]0;title\x07 end")
    elif way == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
        bytearray(1 << 30)
    elif way == "descriptors":
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
        [open("/dev/null") for _ in range(32)]
    elif way == "daemon":
        leave_a_daemon()
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        raise SystemExit("unknown way " + way)


class Life:
    """From its start to its end, past all the places where the orders may strike."""

    def __init__(self, orders):
        self.orders = orders
        self.is_victim = orders.get("rank") in (rank, "all")

    def reach(self, phase):
        if self.is_victim and self.orders.get("phase") == phase:
            die(self.orders["way"], self.orders.get("more", 0))

    def strike_within(self, phase):
        """The victim is struck by a thread of its own; others come later, so that it waits for them there."""
        if self.orders.get("phase") != phase:
            return
        if self.is_victim:
            threading.Timer(self.orders["after"], die, (self.orders["way"], self.orders.get("more", 0))).start()
        else:
            time.sleep(0.2)

    def live(self):
        self.prepare()
        self.reach("before init")
        self.strike_within("in init")
        hvd.init()
        for _ in range(10):
            add_up_and_check()
        self.reach("between collectives")
        for _ in range(10):
            add_up_and_check()
        say("at work")
        if self.orders.get("stays"):
            while True:
                add_up_and_check()
                time.sleep(0.001)
        self.strike_within("in shutdown")
        hvd.shutdown()
        if self.is_victim and self.orders.get("phase") == "in shutdown":
            time.sleep(600)
        self.reach("after shutdown")
        atexit.register(self.reach, "in an atexit handler")

    def prepare(self):
        for what in self.orders.get("before", []):
            if what == "handlers":
                for number in (signal.SIGUSR1, signal.SIGUSR2):
                    signal.signal(number, lambda number, _: say(f"got {signal.Signals(number).name}"))
            elif what == "closed" and self.is_victim:
                for descriptor in (0, 1, 2):
                    os.close(descriptor)
            elif what == "large" and self.is_victim:
                self.memory = bytearray(os.urandom(1 << 20) * 64)
            elif what == "flood" and self.orders.get("flooder") == rank:
                threading.Thread(target=write_for_ever, daemon=True).start()


# ---- the elastic job


def total_after(steps):
    return steps * ITEMS * (steps * ITEMS + 1) // 2


def tell(step):
    path = os.path.join(folder, "progress")
    with open(f"{path}.{os.getpid()}", "w") as file:
        file.write(f"{step} {hvd.size()}")
    os.replace(f"{path}.{os.getpid()}", path)


def train(state):
    say(f"begins as rank {hvd.rank()} of {hvd.size()} from step {state.step} pid {os.getpid()}")
    while True:
        assert state.total == total_after(state.step), (state.total, state.step)
        mine = range(state.step * ITEMS + 1, (state.step + 1) * ITEMS + 1)[hvd.rank()::hvd.size()]
        items, count, finish = add_up([sum(mine), len(mine), int(os.path.exists(os.path.join(folder, "finish")))], "items")
        assert count == ITEMS, (count, hvd.size())
        state.total += items
        state.step += 1
        time.sleep(0.005)  # some of what happens must fall between two collectives
        state.commit()
        if hvd.rank() == 0:
            tell(state.step)
        if finish:
            return


def live_elastically():
    hvd.init()
    broadcast = lambda value: objects.broadcast_object(value, 0, "state", process_sets.global_process_set)  # noqa: E731
    state = elastic.ObjectState(broadcast, hvd.rank, step=0, total=0)
    elastic.run_fn(train, elastic.reset_world)(state)
    assert state.total == total_after(state.step)
    say(f"counted {state.total} items in {state.step} steps, size {hvd.size()}")


if sys.argv[2:] == ["elastic"]:
    live_elastically()
else:
    say("ready")
    life = Life(await_orders())
    try:
        life.live()
    except Exception as error:
        if type(error) in (RuntimeError, MemoryError, OSError) and life.is_victim:
            raise  # as ordered
        say(f"failed: {error}")
        sys.exit(3)
