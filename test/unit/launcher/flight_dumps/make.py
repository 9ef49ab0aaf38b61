"""make.py: writes the dumps of PyTorch's flight recorder that the tests read into its own folder. Needs PyTorch 2.15 or newer.

gloo-RANK.pickle: of PyTorch itself, by two ranks over Gloo, of which rank 1 does not come to the last collective.
nccl-RANK.pickle: in the form that ProcessGroupNCCL writes, which needs GPUs, made of the same fields: three ranks, of which rank 2 is
one collective behind. They have the frames of a stack, shared among entries as PyTorch shares them.
"""

import datetime
import os
import pathlib
import pickle
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
RANKS = 2


def of_gloo(rank):
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    dist.all_reduce(torch.ones(4, 3))
    dist.broadcast(torch.ones(7), 0)
    dist.all_gather([torch.empty(5) for _ in range(RANKS)], torch.ones(5))
    pair = dist.new_group(list(range(RANKS)))
    dist.barrier(group=pair)

    def write():
        (HERE / f"gloo-{rank}.pickle").write_bytes(_dump_fr_trace(includeStackTraces=False))
        os._exit(0)

    threading.Timer(2, write).start()
    if rank == 0:
        dist.all_reduce(torch.ones(1000))
    threading.Event().wait()


FRAMES = [{"name": "all_reduce", "filename": "distributed_c10d.py", "line": 2806}, {"name": "main", "filename": "train.py", "line": 41}]


def entry(number, name, shape, state, group=("0", "default_pg"), p2p=False):
    """One of ProcessGroupNCCL, version 2.10 of the format."""
    over = state == "completed"
    return {
        "frames": FRAMES, "record_id": number, "pg_id": int(group[0]), "process_group": group, "thread_name": "pt_nccl", "thread_id": "7",
        "collective_seq_id": 0 if p2p else number, "p2p_seq_id": number if p2p else 0, "op_id": number, "profiling_name": f"nccl:{name}",
        "time_created_ns": 1795906327196699024 + number, "duration_ms": 0.25, "input_sizes": [shape], "input_dtypes": ["BFloat16"],
        "output_sizes": [shape], "output_dtypes": ["BFloat16"], "state": state, "retired": over, "timeout_ms": 600000, "is_p2p": p2p,
        "time_discovered_started_ns": 1795906327196700000, "time_discovered_completed_ns": 1795906327196800000 if over else None,
    }  # fmt: skip


def of_nccl(rank):
    entries = [entry(n, "all_reduce", [1024, 32], "completed") for n in range(1, 4)]
    if rank < 2:
        entries.append(entry(4, "_all_gather_base", [512], "started" if rank == 0 else "scheduled"))
    dump = {
        "version": "2.10", "comm_lib_version": "2.27.5", "entries": entries,
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
        "pg_status": {"0": {"last_enqueued_collective": entries[-1]["op_id"], "last_started_collective": 3, "last_completed_collective": 3}},
        "nccl_comm_state": {},
    }  # fmt: skip
    (HERE / f"nccl-{rank}.pickle").write_bytes(pickle.dumps(dump, protocol=2))


def main():
    if "RANK" in os.environ:
        return of_gloo(int(os.environ["RANK"]))
    for rank in range(3):
        of_nccl(rank)
    world = {**os.environ, "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29633"}
    ranks = [subprocess.Popen([sys.executable, __file__], env={**world, "RANK": str(rank)}) for rank in range(RANKS)]
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
