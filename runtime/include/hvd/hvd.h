/* hvd.h: the C ABI of libhvd.so, the collective runtime inside each worker. The only public header.
 *
 * Conventions
 *   - Every function may be called from any thread. None throws, none aborts on bad input.
 *   - Functions that can fail return an hvd_status; HVD_OK is 0. After a failure hvd_last_error()
 *     returns one sentence: which rank failed, on which host, what happened, why, and what to try.
 *     It is kept per thread until the thread's next failing call.
 *   - Structs begin with struct_size (sizeof at the caller's compile time). Fields are only ever
 *     appended, so a caller built against an older header keeps working.
 *   - Ranks are world ranks, also inside a process set. Sizes are in bytes, times in milliseconds
 *     unless a name ends in _us (microseconds).
 *   - A process forked after hvd_init() does not belong to the world: each call there returns
 *     HVD_FORKED. The queries from hvd_is_initialized() to hvd_elastic() return the values at the
 *     time of the fork; all others return -1.
 */
#ifndef HVD_HVD_H_
#define HVD_HVD_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HVD_ABI_VERSION 1

#if defined(__GNUC__)
#define HVD_EXPORT __attribute__((visibility("default")))
#else
#define HVD_EXPORT
#endif

typedef enum hvd_status {
  HVD_OK = 0,
  /* hvd_wait timed out; the handle stays valid. */
  HVD_IN_PROGRESS = 1,
  /* The call is wrong on this rank; nothing was submitted (Python: ValueError). */
  HVD_INVALID_ARGUMENT = 2,
  /* hvd_init() has not been called, or hvd_shutdown() has (Python: ValueError). */
  HVD_NOT_INITIALIZED = 3,
  /* A tensor of this name is in flight on this rank (Python: ValueError). */
  HVD_DUPLICATE_NAME = 4,
  /* The ranks disagree about one tensor (Python: HorovodInternalError). */
  HVD_MISMATCH = 5,
  /* The world broke: a peer died or left, or the job ends (Python: HorovodInternalError). */
  HVD_ABORTED = 6,
  /* Not built or not implemented; the sentence says which piece is missing. */
  HVD_UNSUPPORTED = 7,
  HVD_OUT_OF_MEMORY = 8,
  /* Called in a child forked after hvd_init(). */
  HVD_FORKED = 9,
  /* A bug in the runtime, or a failed system call. */
  HVD_INTERNAL = 10,
  /* hvd_init(): the job continues without this process, because its host was removed or its slot is
   * no longer needed. The process must exit with code 0 (Python: SystemExit). */
  HVD_DISMISSED = 11
} hvd_status;

typedef enum hvd_dtype {
  HVD_UINT8 = 0,
  HVD_INT8 = 1,
  HVD_UINT16 = 2,
  HVD_INT16 = 3,
  HVD_INT32 = 4,
  HVD_INT64 = 5,
  HVD_FLOAT16 = 6,
  HVD_FLOAT32 = 7,
  HVD_FLOAT64 = 8,
  HVD_BOOL = 9,
  HVD_BFLOAT16 = 10,
  HVD_FLOAT8_E4M3 = 11,
  HVD_FLOAT8_E5M2 = 12
} hvd_dtype;

typedef enum hvd_collective {
  HVD_ALLREDUCE = 0,
  HVD_ALLGATHER = 1,
  HVD_BROADCAST = 2,
  HVD_ALLTOALL = 3,
  HVD_REDUCESCATTER = 4,
  HVD_BARRIER = 5,
  HVD_JOIN = 6
} hvd_collective;

typedef enum hvd_reduce_op {
  HVD_AVERAGE = 0,
  HVD_SUM = 1,
  HVD_ADASUM = 2,
  HVD_MIN = 3,
  HVD_MAX = 4,
  HVD_PRODUCT = 5
} hvd_reduce_op;

typedef enum hvd_device_kind { HVD_DEVICE_HOST = 0, HVD_DEVICE_CUDA = 1 } hvd_device_kind;

/* ---- library ------------------------------------------------------------------------------- */

/* HVD_ABI_VERSION of the library. */
HVD_EXPORT int32_t hvd_abi_version(void);

/* For example "0.1.0"; static storage. */
HVD_EXPORT const char* hvd_version_string(void);

/* The sentence of this thread's last error, "" if there is none. */
HVD_EXPORT const char* hvd_last_error(void);

/* The name of a status, for example "HVD_ABORTED"; static storage. */
HVD_EXPORT const char* hvd_status_name(int32_t status);

/* 1 if the feature is in this build and can be loaded, else 0. Features: "shm" "gloo" "mpi" "nccl"
 * "cuda" "rocm" "ccl" "ddl". For "nccl" its version instead of 1, e.g. 22809 for NCCL 2.28.9. */
HVD_EXPORT int32_t hvd_built(const char* feature);

/* ---- world --------------------------------------------------------------------------------- */

typedef struct hvd_init_options {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  /* How long to wait for the other ranks' hvd_init(). <= 0: no limit of its own; the runtime prints
   * a warning once a minute, and the launcher ends the wait when a rank can no longer join. */
  int64_t timeout_ms;
  /* Process sets to register with the world, the same on every rank. They get the ids 1, 2, ...
   * `process_set_ranks` holds their world ranks, one set after the other; `process_set_sizes` holds
   * the number of ranks of each set. In an elastic world, whose size is not known in advance, a set
   * has those of its ranks that exist; a set that is then empty, is the whole world or equals an
   * earlier one is not registered and gets no id. */
  const int32_t* process_set_ranks;
  const int32_t* process_set_sizes;
  int32_t process_set_count;
  int32_t reserved;
  /* An MPI communicator (MPI_Comm* of the application's MPI library) that becomes the world, or
   * NULL. */
  const void* mpi_comm;
  /* The started ranks that form the world, in any order: the world keeps their ascending order.
   * Each rank passes the ranks of its own world. NULL: all ranks. A subset requires that mpirun
   * started the ranks. */
  const int32_t* ranks;
  int32_t rank_count;
  int32_t reserved2;
} hvd_init_options;

/* Joins the world described by the environment (HVD_AGENT, set by hvdrun, or the variables of other
 * launchers), or forms a world of one rank. No-op if already initialised. Blocks until every rank
 * has called it. `options` may be NULL. */
HVD_EXPORT int32_t hvd_init(const hvd_init_options* options);

/* Leaves the world: pending handles fail with HVD_ABORTED here, and on other ranks if they need
 * this rank. No-op if not initialised. hvd_init() may follow, any number of times. Registered
 * memory stays valid. */
HVD_EXPORT int32_t hvd_shutdown(void);

/* Gives up the world without leaving it: pending and later collectives fail with HVD_ABORTED, while
 * hvd_rank() and the other queries still work. Call hvd_shutdown() afterwards. No-op if not
 * initialised. */
HVD_EXPORT int32_t hvd_give_up(void);

/* Starts writing the operations of the ranks on rank 0's host to this file, for chrome://tracing
 * and Perfetto; no-op on other ranks. `mark_cycles` not 0: also mark each submission made while
 * nothing of its rank is in flight. No-op if this path is already being written. HVD_UNSUPPORTED
 * unless HOROVOD_TIMELINE was set (to DYNAMIC, or to a file) when hvd_init() was called;
 * HVD_INVALID_ARGUMENT if the file cannot be written. */
HVD_EXPORT int32_t hvd_start_timeline(const char* path, int32_t mark_cycles);
/* The file is complete when this returns. No-op if none is being written. */
HVD_EXPORT int32_t hvd_stop_timeline(void);

HVD_EXPORT int32_t hvd_is_initialized(void);

/* Each of these returns -1 if not initialised. In a forked child they return the values at the
 * fork. */
HVD_EXPORT int32_t hvd_rank(void);
HVD_EXPORT int32_t hvd_size(void);
HVD_EXPORT int32_t hvd_local_rank(void);
HVD_EXPORT int32_t hvd_local_size(void);
HVD_EXPORT int32_t hvd_cross_rank(void);
HVD_EXPORT int32_t hvd_cross_size(void);
/* 1 if every host has the same number of ranks. */
HVD_EXPORT int32_t hvd_is_homogeneous(void);
/* The number of this world; it increases with each world joined. */
HVD_EXPORT int64_t hvd_generation(void);

/* 1 in an elastic world: after hvd_shutdown() the next hvd_init() may join a world of different
 * ranks, even if this one broke. 0 in any other; -1 if not initialised. In an elastic world
 * hvd_init() updates HOROVOD_RANK, HOROVOD_SIZE, HOROVOD_LOCAL_RANK, HOROVOD_LOCAL_SIZE,
 * HOROVOD_CROSS_RANK and HOROVOD_CROSS_SIZE with setenv(); a language that keeps its own copy of
 * the environment, such as Python's os.environ, keeps the first values. */
HVD_EXPORT int32_t hvd_elastic(void);

/* 1 if the feature carries data of this world, else 0; -1 if not initialised. Features as in
 * hvd_built, except that "mpi" is also 1 if MPI started the ranks and is initialised beside this
 * world; and "mpi_threads": MPI may be called by several threads at once. */
HVD_EXPORT int32_t hvd_enabled(const char* feature);

/* ---- commits ------------------------------------------------------------------------------- */

/* Why all ranks act at a commit; bits may be combined. */
typedef enum hvd_update {
  HVD_UPDATE_REMOVED = 1, /* ranks will be missing in the next world */
  HVD_UPDATE_ADDED = 2,   /* ranks will be new in the next world and need the state of old ones */
  HVD_UPDATE_STOP = 4     /* the job ends here, with exit code 75 */
} hvd_update;

/* Reports that this rank has reached the next commit: a point of the program, the same on all
 * ranks, at which its state is saved. *update is 0 if it may continue: then the call cost an atomic
 * addition and no message. Otherwise it holds the hvd_update bits on which all ranks act at this
 * same commit: they call hvd_shutdown() and hvd_init() to join the next world, or end the job.
 * A rank that continues anyway gets the same answer at its later commits.
 *
 * While the launcher chooses the commit, the call blocks for at most timeout_ms (< 0: no limit of
 * its own): HVD_IN_PROGRESS then, and the next call continues this commit instead of counting
 * another. HVD_ABORTED: the world is broken. Commit from one thread of the process. */
HVD_EXPORT int32_t hvd_commit(int64_t timeout_ms, int32_t* update);

/* 1 while the launcher has an update on which all ranks will act at a later commit, else 0; -1 if
 * not initialised. Ranks see it at different times: use it for waiting and logs, never for a
 * decision that must be the same on all ranks. */
HVD_EXPORT int32_t hvd_update_pending(void);

/* 1 from the commit at which all ranks agreed to stop, 0 before, -1 if not initialised. */
HVD_EXPORT int32_t hvd_should_stop(void);

/* While hvd_should_stop() is 1: the milliseconds after the request for which the launcher waits for
 * the ranks to exit before it ends them; 0: no limit. -1 otherwise. */
HVD_EXPORT int64_t hvd_stop_grace_ms(void);

/* ---- process sets -------------------------------------------------------------------------- */

/* Id 0 is the world. The rank within the set is -1 for a rank that is not a member, the size is -1
 * for an unknown set. */
HVD_EXPORT int32_t hvd_process_set_size(int32_t process_set);
HVD_EXPORT int32_t hvd_process_set_rank(int32_t process_set);

/* Registers a set on all ranks of the world. Every rank calls it with the same world ranks (any
 * order, no duplicates) and gets the same id, the smallest free one. Blocks until all have called
 * it. HVD_INVALID_ARGUMENT: a set of the same ranks exists, or a rank is outside the world or
 * listed twice. HVD_MISMATCH: the callers passed different ranks. */
HVD_EXPORT int32_t hvd_add_process_set(const int32_t* ranks, int32_t count, int32_t* id);

/* Removes a set on all ranks. Every rank calls it; blocks until all have. Pending collectives on
 * the set fail with HVD_ABORTED. HVD_INVALID_ARGUMENT for the world and for an unknown id. */
HVD_EXPORT int32_t hvd_remove_process_set(int32_t id);

/* Writes the ids of all sets, ascending, at most `capacity`. Returns how many exist, -1 if not
 * initialised. */
HVD_EXPORT int32_t hvd_process_set_ids(int32_t* ids, int32_t capacity);

/* Writes the world ranks of a set, ascending, at most `capacity`. Returns how many it has, -1 for
 * an unknown set. */
HVD_EXPORT int32_t hvd_process_set_ranks(int32_t id, int32_t* ranks, int32_t capacity);

/* ---- collectives --------------------------------------------------------------------------- */

typedef struct hvd_tensor {
  uint32_t struct_size;
  int32_t dtype; /* hvd_dtype */
  /* Contiguous elements, read until the handle is done. May be NULL if there are no elements. On a
   * CUDA device: read until the work on `stream` enqueued before the handle is done has run. */
  const void* input;
  /* Contiguous elements, written until the handle is done. May equal `input` (in place), else must
   * not overlap it. NULL for an allgather, alltoall or reducescatter: the runtime allocates it, see
   * hvd_wait_result. */
  void* output;
  /* `ndim` extents, each >= 0; copied by the call. `ndim` 0 is a scalar (one element). */
  const int64_t* shape;
  int32_t ndim;         /* 0 to 8 */
  int32_t device_kind;  /* hvd_device_kind */
  int32_t device_index; /* ordinal, 0 for the host */
  int32_t reserved;
  /* The CUDA stream that produces the input (NULL: the default stream). The collective begins after
   * the work enqueued on it so far; work enqueued once the handle is done sees the output. */
  void* stream;
} hvd_tensor;

typedef enum hvd_request_flag {
  HVD_EXACT_SCALES = 1 /* prescale and postscale are used as given; 0.0 makes every element zero */
} hvd_request_flag;

struct hvd_result;

/* Receives the outcome of a collective: what hvd_wait would have returned, the error message (""
 * for HVD_OK; valid during the call), and the result (NULL for an error; valid during the call, but
 * the memory of its outputs belongs to the callee, which releases it with hvd_free()). The outputs
 * are result->outputs->struct_size bytes apart. The name is free, so the callee may submit it
 * again. It must not block, throw, or call hvd_init() or hvd_shutdown(). */
typedef void (*hvd_done_function)(void* arg, int32_t status, const char* sentence,
                                  struct hvd_result* result);

typedef struct hvd_request {
  uint32_t struct_size;
  int32_t collective; /* hvd_collective */
  /* Matches this tensor across ranks: 1 to 16,384 bytes of UTF-8; copied. NULL: the runtime
   * generates a name from the collective and a counter of unnamed ones per process set, so every
   * rank of the set must make its unnamed calls in the same order. */
  const char* name;
  const hvd_tensor* tensor; /* NULL for a barrier */
  int32_t reduce_op;        /* hvd_reduce_op; allreduce and reducescatter */
  int32_t root_rank;        /* world rank; broadcast */
  int32_t process_set;      /* 0: the world */
  uint32_t flags;           /* bits of hvd_request_flag */
  /* The input is multiplied by `prescale` before the reduction and its result by `postscale`. 0.0,
   * as in a zeroed request, means 1.0, unless HVD_EXACT_SCALES is set. */
  double prescale;
  double postscale;
  /* A group: `tensor` points to this many tensors, which succeed or fail together under one name
   * and one handle. 0 means 1. The tensors are sizeof(hvd_tensor) (their own struct_size) bytes
   * apart. Not for barrier, join and alltoall. */
  int32_t tensor_count;
  /* Alltoall: 0 (equal shares) or the size of the process set. */
  int32_t splits_count;
  /* Alltoall: rows of dimension 0 for each member, in order of rank. Their sum is at most dimension
   * 0. */
  const int64_t* splits;
  /* Identifies the tensors of a group beyond their types and shapes: a hash of their names, in
   * order. 0: they are identified by position. Ranks that differ get HVD_MISMATCH and nothing is
   * combined. */
  uint64_t members_hash;
  /* The names, for that error message: UTF-8, one per line; copied. NULL: it shows none. */
  const char* members;
  /* hvd_submit only: called exactly once, when the collective has ended; the request then has no
   * handle. NULL: the caller waits. Never called if hvd_submit fails. It is called without a lock
   * held, by one thread of the library that starts with the first such request, sleeps while none
   * is in flight, and makes progress. What is pending when hvd_shutdown() begins ends with
   * HVD_ABORTED before hvd_shutdown() returns. A forked child has no such thread, and no callback
   * is called there. */
  hvd_done_function on_done;
  void* on_done_arg;
  /* Microseconds for which hvd_submit itself waits first; if the collective ends within them,
   * on_done is called by the submitting thread before hvd_submit returns. 0: does not wait. */
  int64_t on_done_wait_us;
} hvd_request;

/* Initial values, to which the caller adds what it needs:
 *   hvd_tensor tensor = HVD_TENSOR_INIT;
 *   hvd_request request = HVD_REQUEST_INIT;
 */
#define HVD_INIT_OPTIONS_INIT \
  { sizeof(hvd_init_options), 0, 0, NULL, NULL, 0, 0, NULL, NULL, 0, 0 }
#define HVD_TENSOR_INIT \
  { sizeof(hvd_tensor), HVD_FLOAT32, NULL, NULL, NULL, 0, 0, 0, 0, NULL }
#define HVD_REQUEST_INIT                                                                       \
  {                                                                                            \
    sizeof(hvd_request), HVD_ALLREDUCE, NULL, NULL, HVD_SUM, 0, 0, 0, 1.0, 1.0, 0, 0, NULL, 0, \
        NULL, NULL, NULL, 0                                                                    \
  }

typedef uint64_t hvd_handle; /* 0 is never a valid handle */

/* Starts a collective, which is never finished inside this call. Errors of the call itself are
 * returned immediately and leave nothing behind; hvd_wait reports disagreement between ranks and
 * deaths. The tensor's memory must stay valid until the handle is done. With `on_done` there is no
 * handle: *handle is 0, and `handle` may be NULL. The name is in use until hvd_wait has completed
 * or hvd_poll has returned 1. If the collective finishes without either, the name is in use until
 * the next call of this process that submits, polls or waits has checked for duplicates. */
HVD_EXPORT int32_t hvd_submit(const hvd_request* request, hvd_handle* handle);

/* *done = 1 if the collective had finished (with success or an error) before the call: then
 * hvd_wait returns immediately. 0 at least once for a new handle. Makes progress. */
HVD_EXPORT int32_t hvd_poll(hvd_handle handle, int32_t* done);

/* Waits at most timeout_ms (< 0: no limit of its own), making progress. Any result other than
 * HVD_IN_PROGRESS releases the handle. HVD_INVALID_ARGUMENT for an unknown handle; HVD_ABORTED for
 * a handle of a world that was shut down, also after the next hvd_init(). */
HVD_EXPORT int32_t hvd_wait(hvd_handle handle, int64_t timeout_ms);

/* hvd_wait in microseconds, for callers that wait briefly before they do something else. */
HVD_EXPORT int32_t hvd_wait_us(hvd_handle handle, int64_t timeout_us);

/* One output of a finished collective. */
typedef struct hvd_output {
  uint32_t struct_size;
  int32_t ndim;
  /* Memory that the runtime allocated because the request had none, on the inputs' device (or
   * host). The caller owns it and releases it with hvd_free(). NULL if the caller supplied the
   * memory or there are no elements. */
  void* data;
  int64_t shape[8];
} hvd_output;

/* The results of a finished collective other than its data. The caller sets struct_size, the
 * pointers and the counts (capacities); hvd_wait_result stores the actual counts. */
typedef struct hvd_result {
  uint32_t struct_size;
  int32_t output_count;
  /* One per tensor of the request, or NULL. */
  hvd_output* outputs;
  /* Alltoall: rows received from each member, or NULL. */
  int64_t* received_splits;
  int32_t received_splits_count;
  /* Join: the world rank that joined last; else -1. */
  int32_t last_joined_rank;
} hvd_result;

/* hvd_wait that also returns the result. Outputs that are not returned (hvd_wait, or too little
 * room) are freed. */
HVD_EXPORT int32_t hvd_wait_result(hvd_handle handle, int64_t timeout_ms, hvd_result* result);

/* hvd_submit and hvd_wait without limit in one call: the fastest way for a blocking collective. */
HVD_EXPORT int32_t hvd_run(const hvd_request* request);

/* hvd_run that waits at most timeout_ms (< 0: no limit of its own). HVD_IN_PROGRESS: the collective
 * continues, and *handle is its handle, for hvd_wait. With every other result *handle is 0.
 * `handle` may be NULL if timeout_ms is < 0. */
HVD_EXPORT int32_t hvd_run_for(const hvd_request* request, int64_t timeout_ms, hvd_handle* handle);

/* ---- registered memory --------------------------------------------------------------------- */

/* Allocates memory that all ranks of this host can access, so that tensors in it are reduced in
 * place, without a copy. 64-byte aligned, zeroed, owned by the caller until hvd_free(). Usable
 * before hvd_init() and after hvd_shutdown(). NULL if there is no memory (hvd_last_error() says
 * why): use malloc then; everything still works, with one more copy. */
HVD_EXPORT void* hvd_alloc(size_t bytes);

/* NULL is allowed. The memory must not be in use by a pending handle. CUDA device memory is freed
 * once the device has finished all work of this process. */
HVD_EXPORT int32_t hvd_free(void* memory);

/* 1 if the whole range is registered memory. */
HVD_EXPORT int32_t hvd_is_registered(const void* memory, size_t bytes);

/* ---- monitoring ----------------------------------------------------------------------------- */

/* Records an optimizer step of this rank: counted by hvdrun top, marked in a timeline. Costs some
 * nanoseconds, sends nothing, never fails; no-op before hvd_init(). Any thread. */
HVD_EXPORT int32_t hvd_note_step(void);

#ifdef __cplusplus
}
#endif
#endif /* HVD_HVD_H_ */
