"""Sentences that more than one test looks for: each wording stands once."""

import re

ENDED_BY_SIGINT = "hvdrun: ended by signal 2 (SIGINT); all ranks were ended."
BACK = re.compile(r"hvdrun: host hvd2 is back after [\d.]+ s\n")
NO_SERVER = "so the world spans several hosts, and there is no key-value server"
STALL_LIMIT_PASSED = "longer than HOROVOD_STALL_SHUTDOWN_TIME_SECONDS allows"


def killed(rank, host):
    """A pattern for the first cause: this rank was killed with SIGKILL."""
    return rf"hvdrun: rank {rank} on host {host} \(pid \d+\) failed: signal 9"


def not_sent(reason):
    """A pattern for the cause of a failed start: hvdrun is missing on a host and could not be copied there for this reason."""
    return rf"hvdrun is neither at \S+ nor on PATH, and it could not be sent there: {reason}"
