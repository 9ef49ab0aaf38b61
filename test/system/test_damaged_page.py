"""A stray write of one rank into the page that all ranks of a host share: the agent lives, and says what happened."""

import re
import signal

import pytest
from conftest import worker

# Where the header keeps what the agent once wrote, and something else.
LOCAL_SIZE, GENERATION, BLOCK_STRIDE, BROKEN = 12, 16, 40, 128


def page_worker(*words):
    return worker("page_worker.py", *words)


def test_no_word_of_the_page_ends_the_agent(run):
    job = run("-np", 2, *page_worker("each"))
    assert job.code in (0, 1) and len(re.findall(r"words: (\d+)", job.out)) == 2, job.err + job.out
    assert "agent" not in job.err, job.err


@pytest.mark.parametrize("offset", [LOCAL_SIZE, GENERATION, BLOCK_STRIDE, BROKEN])
def test_a_rank_that_damages_the_header_and_dies_is_the_cause(run, offset):
    job = run("-np", 2, *page_worker("die", offset, "0x40400000"))
    assert job.code == 137, job.err
    assert re.search(r"hvdrun: rank 1 on host .* failed: signal 9", job.err), job.err
    assert "told: rank 1 on host " in job.out


@pytest.mark.parametrize("offset", [LOCAL_SIZE, GENERATION, BLOCK_STRIDE, BROKEN])
def test_a_damaged_header_is_told(run, offset):
    job = run("-np", 2, *page_worker("tell", offset, "0x40400000"))
    assert len(re.findall(r"told: the memory that the ranks of host .* share was overwritten by a stray write \(its header\)",
                          job.out)) == 2, job.out + job.err
    assert "was lost" not in job.err


@pytest.mark.parametrize("value", ["0x40000000", "0xc0000000", "0x7fffffff", "1"])
def test_a_damaged_part_of_a_rank_is_told_and_the_rank_named(run, value):
    """The first two are what the kernel writes for a death, and -2.0 and 2.0."""
    job = run("-np", 2, *page_worker("tell", "alive", value))
    assert len(re.findall(r"told: the memory that the ranks of host .* share was overwritten by a stray write "
                          r"\(the part of rank 1\)", job.out)) == 2, job.out + job.err
    assert "died in the middle" not in job.out


def test_a_real_rank_cannot_write_into_the_header(run):
    """Its own mapping of it is read-only: the instruction that strays ends its own rank."""
    stray = ("import ctypes, os, sys; sys.path[:0] = os.environ['PYTHONPATH'].split(':'); "
             "from horovod.common.basics import HorovodBasics; HorovodBasics().init(); "
             "at = [int(l.split('-')[0], 16) for l in open('/proc/self/maps') if 'hvd-page' in l][0]; "
             "os.environ['HOROVOD_RANK'] == '1' and ctypes.memset(at + 12, 64, 4); import time; time.sleep(600)")
    job = run("-np", 2, "/usr/bin/python3", "-c", stray)
    assert job.code == 128 + signal.SIGSEGV, job.err
    assert re.search(r"hvdrun: rank 1 on host .* failed: signal 11", job.err), job.err
