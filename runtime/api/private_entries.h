/* Entries of libhvd.so for the horovod package of the same build. They are no part of the C ABI:
 * other programs do not call them, and they may change with any release. */
#ifndef HVD_RUNTIME_API_PRIVATE_ENTRIES_H_
#define HVD_RUNTIME_API_PRIVATE_ENTRIES_H_

#include <stdint.h>

#include "hvd/hvd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For the launcher, when a collective takes too long: this process handles `signal`, a real-time
 * one, by writing the stacks of its threads, as Python's faulthandler does, to the end of `fd`, a
 * memfd called "hvd-stacks". 0, 0: it does not. */
HVD_EXPORT int32_t hvd_note_stacks(int32_t signal, int32_t fd);

/* hvd_generation() under the name of earlier releases. */
HVD_EXPORT int64_t hvd_epoch(void);

/* A new reference to a Python function that runs a collective of one tensor (HVD_ALLREDUCE or
 * HVD_BROADCAST) as hvd_run_for does, or starts it as hvd_submit does where slice_ms is 0, in one
 * call and without ctypes. NULL where this process has no Python that libraries can see, or where
 * tensor_type has no exchange of DLPack 1 in C.
 *
 *   function(input, output, name, reduce_op, root_rank, process_set, prescale, postscale)
 *
 * gives 0 when the collective is done, its handle when it goes on after slice_ms, an hvd_status as
 * a negative number when it failed, and None, with nothing submitted, when it does not take such
 * tensors or arguments: then hvd_submit may, or says why not. Both tensors are of tensor_type
 * itself, in the processor's memory, of one type and shape, with at least one element and their
 * elements in a row; a collective in place has the same one twice. name is None or a str;
 * "OPERATION.name" names the collective.
 *
 * tensor_type is a PyObject*. The caller has the interpreter lock; a call of the function gives it
 * up while it waits. Never throws, and leaves no exception set. */
HVD_EXPORT void* hvd_python_runner(void* tensor_type, int32_t collective, const char* operation,
                                   int64_t slice_ms);

#ifdef __cplusplus
}
#endif
#endif /* HVD_RUNTIME_API_PRIVATE_ENTRIES_H_ */
