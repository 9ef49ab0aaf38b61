#!/usr/bin/env python3
"""A stand-in for jsrun of LSF: checks its arguments and its resource file, and starts the ranks here with the variables that
jsrun sets. It proves hvdrun's command line and file, not IBM's behaviour."""

import os
import re
import subprocess
import sys

RANK = re.compile(r"rank: (\d+): \{ hostname: (\S+); cpu: \{(\d+)-(\d+)\} ; gpu: \* ; mem: \* \}")


def ranks_of(path):
    assert os.stat(path).st_mode & 0o777 == 0o600, "the file is for its owner only"
    lines = open(path).read().split("\n")
    assert lines[:3] == ["overlapping_rs: allow", "cpu_index_using: logical", ""], lines
    found = [RANK.fullmatch(line).groups() for line in lines[3:] if line]
    assert [int(rank) for rank, *_ in found] == list(range(len(found)))
    taken = set()
    for _, host, first, last in found:
        mine = {(host, cpu) for cpu in range(int(first), int(last) + 1)}
        assert mine and not mine & taken
        taken |= mine
    return found


def main(args):
    if args[0] == "--erf_input":
        ranks = ranks_of(args[1])
        del args[:2]
    else:
        assert args[:1] == ["-n"], f"what is {args[0]}?"
        ranks = [(number, "localhost") for number in range(int(args[1]))]
        del args[:2]
    if args[0] == "--smpiargs":
        print("smpiargs", args[1], file=open(os.environ["JSRUN_SAID"], "w"))
        del args[:2]
    assert not args[0].startswith("-"), f"what is {args[0]}?"
    size = str(len(ranks))
    children = [subprocess.Popen(args, env=dict(os.environ, JSM_NAMESPACE_RANK=str(rank), JSM_NAMESPACE_SIZE=size))
                for rank, *_ in ranks]
    return max(child.wait() for child in children)


sys.exit(main(sys.argv[1:]))
