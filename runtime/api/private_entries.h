/* Entries of libhvd.so for the horovod package of the same build. They are not part of the C ABI:
 * other programs must not call them, and they may change with any release. */
#ifndef HVD_RUNTIME_API_PRIVATE_ENTRIES_H_
#define HVD_RUNTIME_API_PRIVATE_ENTRIES_H_

#include <stdint.h>

#include "hvd/hvd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For the launcher, when a collective takes too long: installs a handler for `signal`, a real-time
 * signal, that appends the stacks of all threads, as Python's faulthandler does, to `fd`, a memfd
 * called "hvd-stacks". 0, 0: no handler. */
HVD_EXPORT int32_t hvd_note_stacks(int32_t signal, int32_t fd);

/* hvd_generation() under the name of earlier releases. */
HVD_EXPORT int64_t hvd_epoch(void);

/* A new reference to a Python function that, in one call and without ctypes, runs a collective of
 * one tensor (HVD_ALLREDUCE or HVD_BROADCAST) as hvd_run_for does, or starts it as hvd_submit does
 * if slice_ms is 0. NULL if this process has no Python visible to libraries, or if tensor_type does
 * not support DLPack 1's C exchange.
 *
 *   function(input, output, name, reduce_op, root_rank, process_set, prescale, postscale)
 *
 * returns 0 when the collective is done, its handle if it continues after slice_ms, an hvd_status
 * as a negative number if it failed, and None, with nothing submitted, if it does not support these
 * tensors or arguments: then use hvd_submit, which may, or reports why not. Both tensors are of
 * exactly tensor_type, in host memory, of the same type and shape, contiguous, with at least one
 * element; for an in-place collective pass the same one twice. name is None or a str;
 * "OPERATION.name" names the collective.
 *
 * tensor_type is a PyObject*. Call with the GIL held; the function releases it while it waits.
 * Never throws, and leaves no exception set. */
HVD_EXPORT void* hvd_python_runner(void* tensor_type, int32_t collective, const char* operation,
                                   int64_t slice_ms);

#ifdef __cplusplus
}
#endif
#endif /* HVD_RUNTIME_API_PRIVATE_ENTRIES_H_ */
