"""Prints what each rank knows about its place, and has it added up over the world."""

import horovod.numpy as hvd

hvd.init()
place = (hvd.rank(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous())
places = hvd.allgather_object(place)
assert places[hvd.rank()] == place and hvd.allreduce([1.0], op=hvd.Sum)[0] == hvd.size()
if hvd.rank() == 0:
    print('places', places, flush=True)
print('ok', flush=True)
