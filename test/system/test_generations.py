"""Joining, generations and broken generations, seen by workers that speak the link protocol themselves."""

import pytest
from conftest import worker


def lines(job, rank):
    prefix = f"[{rank}]<stdout>:"
    return [line[len(prefix) :] for line in job.out.splitlines() if line.startswith(prefix)]


def test_all_ranks_join_one_generation_and_leave(run):
    job = run("-np", 3, *worker("link_worker.py", "join", "goodbye"))
    assert job.code == 0, job.err
    for rank in range(3):
        assert lines(job, rank) == [f"generation 1 rank {rank} size 3 page True"]


def test_generations_are_numbered_on(run):
    job = run("-np", 2, *worker("link_worker.py", *["join", "goodbye"] * 20))
    assert job.code == 0, job.err
    assert lines(job, 1)[-1] == "generation 20 rank 1 size 2 page True"


def test_death_inside_an_generation_is_told_to_the_others_and_is_the_cause(run):
    job = run("-np", 3, *worker("link_worker.py", "join", "1:kill", "broken", "goodbye", "exit=7"))
    assert job.code == 137
    (_, broken) = lines(job, 0)
    assert broken.startswith("broken 1: rank 1 on host ") and "without hvd.shutdown()" in broken
    assert "rank 1 on host" in job.err and "signal 9 (SIGKILL)" in job.err
    assert "2 other ranks were ended" in job.err


def test_exit_without_goodbye_fails_the_job_even_with_code_0(run):
    job = run("-np", 2, *worker("link_worker.py", "join", "1:exit=0", "broken", "exit=5"))
    assert job.code == 1
    assert "rank 1 on host" in job.err and "not hvd.shutdown()" in job.err


def test_rank_that_ends_before_it_joins_releases_those_who_wait(run):
    job = run("-np", 2, *worker("link_worker.py", "1:exit=0", "join", "exit=4"))
    assert job.code == 1
    assert "rank 1 on host" in job.err and "ended too early (exit code 0)" in job.err
    (broken,) = lines(job, 0)
    assert broken.startswith("broken 0: rank 1 (pid ")
    assert broken.endswith(
        "ended with exit code 0 before it called hvd.init(), so the world of 2 cannot form"
    )


def test_rank_that_ends_after_its_goodbye_is_no_death(run):
    job = run("-np", 2, *worker("link_worker.py", "join", "goodbye", "1:exit=0", "exit=0"))
    assert job.code == 0, job.err


def test_data_segments_are_handed_over_by_descriptor(run):
    job = run("-np", 1, *worker("link_worker.py", "join", "alloc=12345", "fetch=1", "fetch=2", "goodbye"))
    assert lines(job, 0)[1:] == [
        "segment 1 bytes 12345 real 12345 error ''",
        "segment 1 bytes 12345 real 12345 error ''",
        "segment 2 bytes 0 real -1 error 'segment 2 does not exist any more'",
    ]


def test_ranks_of_several_hosts_hear_where_all_of_them_are(run):
    job = run("-np", 5, "--hosts-per-machine", 2, *worker("link_worker.py", "join", "world", "goodbye"))
    assert job.code == 0, job.err
    for rank in range(5):
        assert lines(job, rank) == [
            f"generation 1 rank {rank} size 5 page True",
            "runs [(0, 0, 3, 1), (1, 0, 2, 1)] key True listen 127.0.0.1 ports (0, 0)",
        ]


def test_an_entry_of_the_directory_reaches_those_who_waited_and_those_who_come_later(run):
    steps = ["join", "2:pause=0.2", "2:put=leader.1=tcp://x", "2:put=leader.1.b=" + "y" * 3000, "get=leader.1"]
    job = run("-np", 4, "--hosts-per-machine", 2, *worker("link_worker.py", *steps, "get=leader.1.b", "goodbye"))
    assert job.code == 0, job.err
    for rank in range(4):
        assert lines(job, rank)[1:] == ["leader.1=tcp://x", "leader.1.b=" + "y" * 3000]


def test_results_are_pushed_to_whoever_waits(run):
    """Results of many ranks: each is told once, as it is, and the reader is answered when it comes; nobody polls."""
    ranks = range(24)
    value = {rank: "result %d \u00e9\t\x01" % rank + "z" * 2000 for rank in ranks}
    puts = [f"{rank}:put=result.{rank}={value[rank]}" for rank in reversed(ranks)]
    gets = [f"0:get=result.{rank}" for rank in ranks]
    job = run("-np", 24, "--hosts-per-machine", 2, *worker("link_worker.py", "join", *puts, *gets, "goodbye"))
    assert job.code == 0, job.err
    assert lines(job, 0)[1:] == [f"result.{rank}={value[rank]}" for rank in ranks]


def test_the_directory_forgets_with_the_generation(run):
    steps = ["join", "0:put=a=old", "get=a", "goodbye", "join", "1:pause=0.2", "1:put=a=new", "get=a", "goodbye"]
    job = run("-np", 2, "--hosts-per-machine", 2, *worker("link_worker.py", *steps))
    assert job.code == 0, job.err
    for rank in range(2):
        assert [line for line in lines(job, rank) if line.startswith("a=")] == ["a=old", "a=new"]


def test_who_waits_for_an_entry_hears_of_a_death_on_another_host(run):
    job = run("-np", 2, "--hosts-per-machine", 2, *worker("link_worker.py", "join", "1:kill", "get=never", "exit=7"))
    assert job.code == 137
    assert lines(job, 0)[1].startswith("broken 1: rank 1 on host ")


def test_a_second_process_in_one_slot_is_refused_with_a_sentence(run):
    job = run("-np", 1, *worker("link_worker.py", "second-link"))
    assert job.code == 8
    assert "slot 0 is in use by process" in lines(job, 0)[0]


@pytest.mark.parametrize("version", [2, 4])
def test_a_runtime_of_another_release_is_refused_with_both_versions(run, version):
    job = run("-np", 1, "env", f"LINK_VERSION={version}", *worker("link_worker.py", "join"))
    assert job.code == 8, job.out + job.err
    assert f"libhvd.so speaks version {version} of the link, hvdrun version 5; use" in lines(job, 0)[0]


def test_a_wrong_key_is_refused(run):
    job = run("-np", 1, "env", "HVD_JOB_KEY=guess", *worker("link_worker.py", "join"))
    assert job.code == 8
    assert "does not have the key of this job" in lines(job, 0)[0]
