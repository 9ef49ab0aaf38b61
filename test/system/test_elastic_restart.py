"""Jobs whose workers are all started again together: scripts that know only torch.distributed, and --elastic-restart."""

import re
import sys

from conftest import kill, read_until, skip_without, wait_until
from elastic_job import Training

# Says with which environment it was started, as a script of torchrun reads it, and waits for the end of the test.
SCRIPT = """
import os, sys, time
print('start', *(os.environ[name] for name in ('TORCHELASTIC_RESTART_COUNT', 'RANK', 'WORLD_SIZE', 'MASTER_ADDR')), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""


def starts(text):
    """[(restart, rank, size)], in order."""
    return sorted(tuple(map(int, said)) for said in re.findall(r"start (\d+) (\d+) (\d+) 127", text))


def test_a_script_of_torch_distributed_grows_and_shrinks_with_the_list(start, tmp_path):
    hosts, finish = tmp_path / "hosts", tmp_path / "finish"
    hosts.write_text("127.0.0.1:1\n")
    job = start("--elastic-restart", "in-job", "-np", 1, "--max-np", 3, "--host-discovery-script", f"cat {hosts}",
                sys.executable, "-c", SCRIPT, finish)
    seen = read_until(job.process.stdout, "start 0 0 1 ")
    hosts.write_text("127.0.0.1:1\n127.0.0.2:5\n")  # no more than --max-np of them
    seen += read_until(job.process.stdout, " 3 127", 3)
    hosts.write_text("127.0.0.2:2\n")
    seen += read_until(job.process.stdout, " 2 127", 2)
    finish.write_text("")
    assert job.finish() == 0, job.err
    assert starts((seen + job.out.encode()).decode()) == [
        (0, 0, 1), (1, 0, 3), (1, 1, 3), (1, 2, 3), (2, 0, 2), (2, 1, 2)], job.err
    assert "there are slots for more ranks; all ranks are started again (restart 1" in job.err
    assert "a rank has no slot any more; all ranks are started again (restart 2" in job.err
    assert "0 of 10 failures" in job.err, "a change of the list is no failure"
    job.nothing_left()


def test_a_script_with_hvd_init_is_started_again_as_a_whole_if_the_user_says_so(start, tmp_path):
    skip_without("numpy")
    training = Training(start, tmp_path, "-np", 2, "--elastic-restart", "in-job")
    first = set(training.await_world(2))
    kill(training.victim(2, 1))
    training.await_text("all ranks are started again (restart 1")
    wait_until("two new ranks", lambda: len(training.worlds(2)) == 4, told=training.text)
    assert len(set(training.worlds(2)) - first) == 2, training.text()
    training.finish()


def test_a_word_that_is_no_way_to_restart_is_refused(run):
    job = run("--elastic", "--elastic-restart", "always", "-np", 2, "true")
    assert job.code == 2 and job.err.count("\n") == 1, job.err
    assert "auto" in job.err and "in-process" in job.err and "in-job" in job.err
