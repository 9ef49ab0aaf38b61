"""A control group with a limit of its own, for the processes that a test starts."""

import contextlib
import pathlib
import tempfile

import pytest
from conftest import wait_until


@contextlib.contextmanager
def limited_group(controller, v1, v2):
    """Makes a group and removes it once it is empty; skips the test where none can be made. `v1` and `v2` are (file, text) of
    the limit in either version. Yields the beginning of a command that moves itself into the group and goes on as another.

    The name comes from mkdtemp, not from the pid: test workers have pid namespaces of their own but share the cgroup tree. On
    version 1 /sys/fs/cgroup is a tmpfs, where any folder can be made: only one with `cgroup.procs` is a group."""
    for root, (file, text) in ((f"/sys/fs/cgroup/{controller}", v1), ("/sys/fs/cgroup", v2)):
        try:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="hvd-test-", dir=root))
        except OSError:
            continue
        members = folder / "cgroup.procs"
        try:
            if members.exists() and (folder / file).exists():
                (folder / file).write_text(text)
                yield ["sh", "-c", f'echo $$ > {members} && exec "$@"', "sh"]
                wait_until("the end of the group", lambda: not members.read_text().strip())
                return
        finally:
            with contextlib.suppress(OSError):  # a test that failed may have left its processes: the rig ends them later
                folder.rmdir()
    pytest.skip(f"no cgroup with a limit of the {controller} controller can be made here")
