"""An elastic job that trains (workers/elastic_worker.py), and the words of its ranks."""

import re
import sys

from conftest import REPO, WORKERS, wait_until

SCRIPT = WORKERS / "elastic_worker.py"
WITH_TORCH = REPO / "test" / "python" / "workers" / "elastic_training.py"


class Training:
    """A job whose output is in a file, and the words of its ranks there."""

    def __init__(self, start, folder, *flags, script=SCRIPT, options=(), **more):
        self.folder = folder
        self.output = folder / "output"
        with open(self.output, "wb") as file:
            command = [sys.executable, script, folder, *options]
            self.job = start("--elastic", *flags, *command, stdout=file, stderr=file, **more)

    def text(self):
        return self.output.read_text(errors="replace")

    def worlds(self, size):
        """{pid: (rank, step)} of the ranks that have trained in a world of this size; the last one of each process."""
        said = re.findall(r"trains as rank (\d+) of (\d+) from step (\d+) after \d+ syncs pid (\d+)", self.text())
        return {int(pid): (int(rank), int(step)) for rank, of, step, pid in said if int(of) == size}

    def victim(self, size, rank):
        """The process that was this rank of the last world of this size."""
        return next(pid for pid, (was, _) in reversed(self.worlds(size).items()) if was == rank)

    def await_text(self, text):
        wait_until(f"{text!r}", lambda: text in self.text() or self.job.process.poll() is not None, told=self.text)
        assert text in self.text(), self.text()

    def await_world(self, size):
        """Until so many processes have trained together in a world of this size."""
        wait_until(f"a world of {size}", lambda: len(self.worlds(size)) >= size, told=self.text)
        return self.worlds(size)

    def await_next_world(self, pids):
        """Until each of these processes trains in one world more than now."""
        said = [self.text().count(f"pid {pid}\n") for pid in pids]
        return lambda: wait_until(f"the next world of {pids}", lambda: all(
            self.text().count(f"pid {pid}\n") > before for pid, before in zip(pids, said)), told=self.text)

    def finish(self):
        job_id = self.job.job_id()
        (self.folder / "finish").write_text("")
        code = self.job.finish()
        assert code == 0, self.text()
        steps = set(re.findall(r"finished after step (\d+)", self.text()))
        assert len(steps) == 1, self.text()
        assert "AssertionError" not in self.text()
        self.job.nothing_left(job_id)
