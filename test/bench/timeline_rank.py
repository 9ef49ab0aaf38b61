"""A rank that reduces tensors like the gradients of a ResNet-50, or another of the sets, again and again. Rank 0 prints how long a
step takes."""
import json
import os
import statistics
import time

STEPS = int(os.environ.get("BENCH_STEPS", "25"))


def main():
    import numpy as np

    import horovod.numpy as hvd  # only the workers have it
    from gradient_sets import SETS

    hvd.init()
    tensors = [np.ones(size, np.float32) for size in SETS[os.environ.get("BENCH_SET", "ResNet-50")]()]
    times = []
    for _ in range(STEPS):
        hvd.barrier()
        before = time.perf_counter()
        handles = [hvd.allreduce_async(tensor, name=f"g{number}") for number, tensor in enumerate(tensors)]
        for handle in handles:
            hvd.synchronize(handle)
        times.append(time.perf_counter() - before)
    if hvd.rank() == 0:
        print(json.dumps({"us": 1e6 * statistics.median(times), "mean_us": 1e6 * statistics.mean(times), "tensors": len(tensors)}), flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
