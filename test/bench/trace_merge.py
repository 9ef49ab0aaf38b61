#!/usr/bin/env python3
"""How fast `hvdrun trace merge` is: two timelines of half of --events each, made up, into one. Goal: 5 million events/s.

    trace_merge.py [--events 10000000] [--hvdrun build/bin/hvdrun] [--folder DIR]
"""

import argparse
import os
import pathlib
import resource
import subprocess
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
HEAD = '{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0","start_time_since_epoch_in_micros":1700000000000000}}'


def operation(us, pid, tid):
    """The five events of one allreduce."""
    place = f'"pid":{pid},"tid":{tid}'
    return [f'{{"ph":"B","name":"NEGOTIATE_ALLREDUCE","ts":{us}.125,{place}}}', f'{{"ph":"X","name":"{pid}","ts":{us}.125,{place},"dur":0}}',
            f'{{"ph":"E","ts":{us + 1}.250,{place}}}', f'{{"ph":"B","name":"ALLREDUCE","ts":{us + 1}.250,{place}}}',
            f'{{"ph":"E","ts":{us + 3}.500,{place},"args":{{"dtype":"float32","shape":"[3, 4]","bytes":48}}}}']


def make(path, events):
    with open(path, "w", encoding="ascii") as file:
        file.write("[\n" + HEAD)
        for number in range(events // 5):
            file.write(",\n" + ",\n".join(operation(5 * number, number % 8, 1 + number % 100)))
        file.write("\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--hvdrun", default=str(REPO / "build" / "bin" / "hvdrun"))
    parser.add_argument("--folder", help="with room for some 200 bytes for each event")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        files = [os.path.join(folder, name) for name in ("a.json", "b.json")]
        for path in files:
            make(path, options.events // 2)
        for _ in range(options.rounds):
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run([options.hvdrun, "trace", "merge", *files, "-o", os.path.join(folder, "out.json")], check=True,
                           stdout=subprocess.DEVNULL)
            seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"merge of {options.events:,} events: {options.events / seconds / 1e6:.2f} million events/s, {seconds:.2f} s, "
                  f"{cpu:.2f} s of a processor, {after.ru_maxrss / 1024:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
