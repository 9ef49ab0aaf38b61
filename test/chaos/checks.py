"""The rules that must hold after a round. `faults` is pure; `Leftovers` looks at the machine."""

import dataclasses
import json
import pathlib
import re
import sys
import time
from typing import Callable, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))  # its helpers, and the rig of hosts

from conftest import read_proc  # noqa: E402
from slowness import scaled  # noqa: E402

END_LIMIT = scaled(30)  # seconds, for a job that is to end; generous, because machines are busy
GONE_LIMIT = scaled(20)  # seconds after hvdrun's end, for what it may not wait for (it was killed, or a host was cut off)


@dataclasses.dataclass
class Expected:
    codes: set  # exit codes that are right; negative: hvdrun itself was ended by that signal
    cause: Optional[str] = None  # a regular expression that hvdrun's words must match; None: not determined
    not_a_cause: Optional[str] = None  # one that they must not match
    also: Callable = lambda seen: []  # what else is wrong, as sentences; looks at the files of the run, too


@dataclasses.dataclass
class Seen:
    code: Optional[int]  # None: the job did not end in time
    words: str  # stderr
    left: list  # sentences about what is left


def faults(seen, expected):
    """The faults, as sentences; nothing when all is well."""
    if seen.code is None:
        return [f"it did not end within {END_LIMIT} s", *seen.left]
    found = list(seen.left)
    if seen.code not in expected.codes:
        found.append(f"its exit code is {seen.code}, not {' or '.join(map(str, sorted(expected.codes)))}")
    if expected.cause is not None and not re.search(expected.cause, seen.words):
        found.append(f"hvdrun does not say {expected.cause!r}")
    if expected.not_a_cause is not None and re.search(expected.not_a_cause, seen.words):
        found.append(f"hvdrun says {expected.not_a_cause!r}")
    return [*found, *expected.also(seen)]


def block_of(words):
    """The last one on the screen: why the job failed."""
    begins = [found.start() for found in re.finditer(r"^hvdrun: rank \d+ on host ", words, re.MULTILINE)]
    return words[begins[-1]:] if begins else ""


def control_characters(seen):
    found = re.search("[\0-\x08\x0b-\x1f\x7f\x80-\x9f]", block_of(seen.words))
    return [f"the last block has the character {found.group()!r}"] if found else []


def no_longer_than(size):
    """The last block; the streams have all."""
    def look(seen):
        length = len(block_of(seen.words))
        return [f"the last block has {length} characters"] if length > size else []
    return look


def broken_json(path, must_be_there):
    """Faults of a file that is whole JSON, or absent."""
    try:
        text = path.read_text()
    except OSError:
        return [f"there is no {path.name}"] if must_be_there else []
    try:
        json.loads(text)
    except ValueError as error:
        return [f"{path.name} is not JSON: {error}: {text[-100:]!r}"]
    return []


def wrongly_counted(output):
    """Faults of an elastic job that ended: all ranks of its last world have counted every item once."""
    if "AssertionError" in output:
        return ["a rank has counted wrongly"]
    counted = re.findall(r"counted (\d+) items in (\d+) steps, size (\d+)", output)
    if len(set(counted)) != 1 or len(counted) != int(counted[0][2]):
        return [f"the ranks have counted {counted}"]
    items = 12 * int(counted[0][1])
    return [] if int(counted[0][0]) == items * (items + 1) // 2 else [f"{items} items make {counted[0][0]}"]


def is_listed(job_id, listings):
    return [f"hvdrun ps lists the job: {text}" for text in listings if job_id is not None and job_id in text]


class Leftovers:
    """The remains of a job that must not be there after it. `files`: folders that were empty before it. `inits`: a
    process in each network and mount namespace that it could use; `processes`: says which of its processes run."""

    def __init__(self, job_id, files, inits, processes):
        self.job_id = job_id
        self.files = files
        self.inits = inits
        self.processes = processes

    def look(self):
        return [*self.of_processes(), *self.of_sockets(), *self.of_files(), *self.of_cgroups()]

    def look_until_gone(self, limit=None):
        end = time.monotonic() + (GONE_LIMIT if limit is None else limit)
        while (left := self.look()) and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def of_processes(self):
        return [f"process {pid} is left: {read_proc(pid, 'cmdline').replace(bytes(1), b' ').decode(errors='replace')[:100]}"
                for pid in self.processes()]

    def of_sockets(self):
        if self.job_id is None:
            return []
        return [f"socket {line.split()[-1]} is left" for init in self.inits
                for line in read_proc(init, "net/unix").decode(errors="replace").splitlines() if self.job_id in line]

    def of_files(self):
        return [f"file {path} is left" for folder in self.files for path in sorted(folder.rglob("*"))]

    def of_cgroups(self):
        if self.job_id is None:
            return []
        return [f"cgroup {path} is left" for path in cgroups() if self.job_id in path.name]


def cgroup_folder():
    """The cgroup2 folder of this process; None where there is no cgroup2."""
    own = [line[3:].strip("/") for line in open("/proc/self/cgroup").read().splitlines() if line.startswith("0::")]
    for line in open("/proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        if right.startswith("cgroup2 ") and own:
            return pathlib.Path(left.split()[4]) / own[0]
    return None


def cgroups():
    """Those that hvdrun made below."""
    folder = cgroup_folder()
    return [] if folder is None else list(folder.glob("hvd-*"))


def job_id_of(processes):
    """The job's own id. An agent's is that plus the number of its host, and HVD_JOB_ID is the agent's."""
    environments = [read_proc(pid, "environ") for pid in processes]
    for name in (rb"TORCHELASTIC_RUN_ID", rb"HVD_JOB_ID"):
        found = [re.search(rb"(?:^|\0)" + name + rb"=([0-9a-f]{16})\0", environment) for environment in environments]
        if any(found):
            return min(match.group(1).decode() for match in found if match)
    return None
