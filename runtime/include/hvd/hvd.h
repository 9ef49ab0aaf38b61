/* hvd.h: the C ABI of libhvd.so, the collective runtime inside each worker. The only public header.
 *
 * Conventions
 *   - Every function may be called from any thread. None throws, none aborts on bad input.
 *   - Functions that can fail return an hvd_status; HVD_OK is 0. hvd_last_error() then gives one
 *     sentence: which rank failed, on which host, what happened, why, and what to try. The sentence
 *     is kept per thread until the next failing call of that thread.
 *   - Structs begin with struct_size (sizeof at the caller's compile time). Fields are only ever
 *     appended, so a caller built against an older header keeps working.
 *   - Ranks are ranks of the whole world, also inside a process set. Sizes are in bytes, times in
 *     milliseconds.
 *   - A process that was forked from one that called hvd_init() has no part in the world: each call
 *     there returns HVD_FORKED. The queries from hvd_is_initialized() to hvd_elastic() answer what
 *     was true at the fork; all others return -1.
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
  /* hvd_wait ran out of its time; the handle stays valid. */
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
  /* Called in a child that was forked after hvd_init(). */
  HVD_FORKED = 9,
  /* A defect of the runtime, or a system call that failed. */
  HVD_INTERNAL = 10,
  /* hvd_init(): the job goes on without this process, because its host left the list or its slot is
   * no longer needed. The process is to end with exit code 0 (Python: SystemExit). */
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
 * "cuda" "rocm" "ccl" "ddl". Of "nccl" its version instead of 1, as 22809 for NCCL 2.28.9. */
HVD_EXPORT int32_t hvd_built(const char* feature);

/* ---- world --------------------------------------------------------------------------------- */

typedef struct hvd_init_options {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  /* How long to wait for the other ranks' hvd_init(). <= 0: no limit of its own; the runtime prints
   * a warning once a minute, and the launcher ends the wait when a rank can no longer come. */
  int64_t timeout_ms;
  /* Process sets to register with the world, the same on every rank. They get the ids 1, 2, ...
   * `process_set_ranks` holds their world ranks, one set after the other; `process_set_sizes` holds
   * the number of ranks of each set. In an elastic world, where the size is not known before, a set
   * has those of its ranks that exist; a set of which none is left, that is the whole world, or
   * that equals one before it is not registered and takes no id. */
  const int32_t* process_set_ranks;
  const int32_t* process_set_sizes;
  int32_t process_set_count;
  int32_t reserved;
  /* A communicator of MPI (MPI_Comm* of the application's MPI library) that becomes the world, or
   * NULL. */
  const void* mpi_comm;
  /* The world is made of these of the ranks that were started, in this order; each rank passes the
   * ranks of its own world. NULL: all ranks. A subset needs ranks that mpirun started. */
  const int32_t* ranks;
  int32_t rank_count;
  int32_t reserved2;
} hvd_init_options;

/* Joins the world that the environment describes (HVD_AGENT, which hvdrun sets, or the variables of
 * other launchers), or makes a world of one rank. Does nothing when already initialised. Blocks
 * until every rank has called it. `options` may be NULL. */
HVD_EXPORT int32_t hvd_init(const hvd_init_options* options);

/* Leaves the world: pending handles fail with HVD_ABORTED here, and on other ranks if they need
 * this rank. Does nothing when not initialised. hvd_init() may follow, any number of times.
 * Registered memory stays valid. */
HVD_EXPORT int32_t hvd_shutdown(void);

/* Gives up the world without leaving it: what is pending fails with HVD_ABORTED, and so does what
 * is submitted later, while hvd_rank() and the other queries still answer. hvd_shutdown() is to
 * follow. Does nothing when not initialised. */
HVD_EXPORT int32_t hvd_give_up(void);

/* Rank 0 writes the operations of the ranks of its host to this file, from now on, for
 * chrome://tracing and Perfetto; other ranks do nothing. `mark_cycles` not 0: also each submission
 * while nothing of its rank is in flight. A path that is being written already changes nothing.
 * HVD_UNSUPPORTED unless HOROVOD_TIMELINE was set (to DYNAMIC, or to a file) when hvd_init() was
 * called; HVD_INVALID_ARGUMENT where the file cannot be written. */
HVD_EXPORT int32_t hvd_start_timeline(const char* path, int32_t mark_cycles);
/* The file is complete when this returns. Does nothing where none is written. */
HVD_EXPORT int32_t hvd_stop_timeline(void);

HVD_EXPORT int32_t hvd_is_initialized(void);

/* Each of these returns -1 when not initialised. In a forked child they answer as at the fork. */
HVD_EXPORT int32_t hvd_rank(void);
HVD_EXPORT int32_t hvd_size(void);
HVD_EXPORT int32_t hvd_local_rank(void);
HVD_EXPORT int32_t hvd_local_size(void);
HVD_EXPORT int32_t hvd_cross_rank(void);
HVD_EXPORT int32_t hvd_cross_size(void);
/* 1: every host has the same number of ranks. */
HVD_EXPORT int32_t hvd_is_homogeneous(void);
/* The number of this world, which grows with each world joined. */
HVD_EXPORT int64_t hvd_generation(void);

/* 1 in an elastic world: after hvd_shutdown() the next hvd_init() may join a world of other ranks,
 * also after this one broke. 0 in any other; -1 when not initialised. There hvd_init() renews
 * HOROVOD_RANK, HOROVOD_SIZE, HOROVOD_LOCAL_RANK, HOROVOD_LOCAL_SIZE, HOROVOD_CROSS_RANK and
 * HOROVOD_CROSS_SIZE by setenv(); a language that keeps its own copy of the environment, as
 * Python's os.environ, still has the first values. */
HVD_EXPORT int32_t hvd_elastic(void);

/* 1 if the feature carries data of this world, else 0; -1 when not initialised. Features as in
 * hvd_built, where "mpi" is 1 also when MPI started the ranks and is initialised beside this world,
 * and "mpi_threads": an MPI that several threads may call at once. */
HVD_EXPORT int32_t hvd_enabled(const char* feature);

/* ---- commits ------------------------------------------------------------------------------- */

/* Why all ranks act at a commit; several may be set. */
typedef enum hvd_update {
  HVD_UPDATE_REMOVED = 1, /* ranks will be missing in the next world */
  HVD_UPDATE_ADDED = 2,   /* ranks will be new in the next world, and need the state of old ones */
  HVD_UPDATE_STOP = 4     /* the job is to end here, with exit code 75 */
} hvd_update;

/* Says that this rank has come to the next commit: a point of the program, the same on all ranks,
 * at which its state is saved. *update is 0 when it may go on: then the call has cost an atomic
 * addition and no message. Otherwise it has the bits of hvd_update by which all ranks act at this
 * same commit: they call hvd_shutdown() and hvd_init() to join the next world, or end the job.
 * A rank that goes on in spite of that gets the same answer at its later commits.
 *
 * While the launcher chooses the commit, the call blocks for at most timeout_ms (< 0: no limit of
 * its own): HVD_IN_PROGRESS then, and the next call goes on with this commit instead of counting
 * another. HVD_ABORTED: the world is broken. One thread of the process commits. */
HVD_EXPORT int32_t hvd_commit(int64_t timeout_ms, int32_t* update);

/* 1 while the launcher has something at which all ranks will act at a commit to come, 0 while it
 * has nothing, -1 when not initialised. Ranks see it at different times: for waiting and logs,
 * never for a decision that all ranks must take alike. */
HVD_EXPORT int32_t hvd_update_pending(void);

/* 1 from the commit on at which all ranks agreed to stop, 0 before, -1 when not initialised. */
HVD_EXPORT int32_t hvd_should_stop(void);

/* While hvd_should_stop() is 1: for how many milliseconds after the request the launcher waits for
 * the ranks to end before it ends them; 0: without a limit. -1 otherwise. */
HVD_EXPORT int64_t hvd_stop_grace_ms(void);

/* ---- process sets -------------------------------------------------------------------------- */

/* Id 0 is the world. The rank within the set is -1 for a rank that is not a member, the size is -1
 * for an unknown set. */
HVD_EXPORT int32_t hvd_process_set_size(int32_t process_set);
HVD_EXPORT int32_t hvd_process_set_rank(int32_t process_set);

/* Registers a set on all ranks of the world. Every rank calls it with the same world ranks (any
 * order, none twice) and gets the same id, the smallest that is free. Blocks until all have called
 * it. HVD_INVALID_ARGUMENT: a set of the same ranks exists, or a rank is outside the world or named
 * twice. HVD_MISMATCH: the callers passed different ranks. */
HVD_EXPORT int32_t hvd_add_process_set(const int32_t* ranks, int32_t count, int32_t* id);

/* Removes a set on all ranks. Every rank calls it; blocks until all have. Collectives that are
 * pending on the set fail with HVD_ABORTED. HVD_INVALID_ARGUMENT for the world and for an unknown
 * id. */
HVD_EXPORT int32_t hvd_remove_process_set(int32_t id);

/* Writes the ids of all sets, ascending, at most `capacity`. Returns how many there are, -1 when
 * not initialised. */
HVD_EXPORT int32_t hvd_process_set_ids(int32_t* ids, int32_t capacity);

/* Writes the world ranks of a set, ascending, at most `capacity`. Returns how many there are, -1
 * for an unknown set. */
HVD_EXPORT int32_t hvd_process_set_ranks(int32_t id, int32_t* ranks, int32_t capacity);

/* ---- collectives --------------------------------------------------------------------------- */

typedef struct hvd_tensor {
  uint32_t struct_size;
  int32_t dtype; /* hvd_dtype */
  /* Contiguous elements, read until the handle is done. May be NULL when there are no elements. On
   * a CUDA device: until the work is done that `stream` has been given when the handle is done. */
  const void* input;
  /* Contiguous elements, written until the handle is done. May equal `input` (in place), else must
   * not overlap it. NULL for an allgather, alltoall or reducescatter: the runtime allocates the
   * memory, see hvd_wait_result. */
  void* output;
  /* `ndim` extents, each >= 0; copied by the call. `ndim` 0 is a scalar (one element). */
  const int64_t* shape;
  int32_t ndim;         /* 0 to 8 */
  int32_t device_kind;  /* hvd_device_kind */
  int32_t device_index; /* ordinal, 0 for the host */
  int32_t reserved;
  /* The CUDA stream that produces the input (NULL: the default one). The collective begins after
   * what it has been given so far; once the handle is done, what it is given sees the output. */
  void* stream;
} hvd_tensor;

typedef enum hvd_request_flag {
  HVD_EXACT_SCALES = 1 /* prescale and postscale count as they are; 0.0 makes every element zero */
} hvd_request_flag;

struct hvd_result;

/* Receives the end of a collective: what hvd_wait would have returned, the sentence of an error (""
 * for HVD_OK; valid during the call), and the result (NULL for an error; valid during the call, but
 * the memory of its outputs belongs to the callee, which gives it back with hvd_free()). The
 * outputs lie result->outputs->struct_size apart. The name is free, so the callee may submit it
 * again. It must not block, throw, or call hvd_init() or hvd_shutdown(). */
typedef void (*hvd_done_function)(void* arg, int32_t status, const char* sentence,
                                  struct hvd_result* result);

typedef struct hvd_request {
  uint32_t struct_size;
  int32_t collective; /* hvd_collective */
  /* Matches this tensor across ranks: 1 to 16,384 bytes of UTF-8; copied. NULL: the runtime makes a
   * name from the collective and a count of the unnamed ones of the process set, so every rank of
   * the set must make its unnamed calls in the same order. */
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
   * and one handle. 0 means 1. The tensors lie sizeof(hvd_tensor) (their own struct_size) apart.
   * Not for barrier, join and alltoall. */
  int32_t tensor_count;
  /* Alltoall: 0 (equal shares) or the size of the process set. */
  int32_t splits_count;
  /* Alltoall: rows of dimension 0 for each member, in order of rank. Their sum is at most dimension
   * 0. */
  const int64_t* splits;
  /* What the tensors are, where equal types and shapes do not tell: a hash of their names, in
   * order. 0: their places alone say what they are. Ranks that differ get HVD_MISMATCH, and
   * nothing is combined. */
  uint64_t members_hash;
  /* The names, for the message of that error: UTF-8, one per line; copied. NULL: it shows none. */
  const char* members;
  /* hvd_submit only: called exactly once, when the collective has ended, instead of a wait; the
   * request has no handle then. NULL: the caller waits. Never called where hvd_submit fails. It is
   * called without a lock, by one thread of the library that starts with the first such request,
   * sleeps while none is in flight, and makes progress. What is pending when hvd_shutdown() begins
   * ends with HVD_ABORTED before hvd_shutdown() returns. A forked child has no such thread, and
   * nothing is called there. */
  hvd_done_function on_done;
  void* on_done_arg;
  /* For how many microseconds hvd_submit itself waits first; where the collective ends within them,
   * on_done is called by the submitting thread, before hvd_submit returns. 0: not at all. */
  int64_t on_done_wait_us;
} hvd_request;

/* Values to begin with, to which a caller adds what it needs:
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
 * returned at once and leave nothing behind; hvd_wait reports disagreement between ranks and
 * deaths. The tensor's memory must stay valid until the handle is done. With `on_done` there is no
 * handle: *handle is 0, and `handle` may be NULL. The name is in use until
 * hvd_wait has ended or hvd_poll has said 1. Where the collective finishes without either, the name
 * is in use until the next call of this process that submits, polls or waits has looked for
 * duplicates. */
HVD_EXPORT int32_t hvd_submit(const hvd_request* request, hvd_handle* handle);

/* *done = 1 when the collective had finished (with success or an error) when the call came: then
 * hvd_wait returns at once. 0 at least once for a fresh handle. Makes progress. */
HVD_EXPORT int32_t hvd_poll(hvd_handle handle, int32_t* done);

/* Waits at most timeout_ms (< 0: no limit of its own) and makes progress meanwhile. Any result
 * other than HVD_IN_PROGRESS forgets the handle. An unknown handle is HVD_INVALID_ARGUMENT; a
 * handle of a world that was shut down is HVD_ABORTED, also after the next hvd_init(). */
HVD_EXPORT int32_t hvd_wait(hvd_handle handle, int64_t timeout_ms);

/* hvd_wait in microseconds, for callers that look briefly before they do something else. */
HVD_EXPORT int32_t hvd_wait_us(hvd_handle handle, int64_t timeout_us);

/* One output of a finished collective. */
typedef struct hvd_output {
  uint32_t struct_size;
  int32_t ndim;
  /* Memory that the runtime allocated because the request had none, where the inputs are (host or
   * device). The caller owns it and gives it back with hvd_free(). NULL when the caller gave the
   * memory, or when there are no elements. */
  void* data;
  int64_t shape[8];
} hvd_output;

/* The results of a finished collective beside its data. The caller sets struct_size, the pointers
 * and the counts, which say how much room there is; hvd_wait_result writes how much there was. */
typedef struct hvd_result {
  uint32_t struct_size;
  int32_t output_count;
  /* One per tensor of the request, or NULL. */
  hvd_output* outputs;
  /* Alltoall: rows that came from each member, or NULL. */
  int64_t* received_splits;
  int32_t received_splits_count;
  /* Join: the world rank that joined last; else -1. */
  int32_t last_joined_rank;
} hvd_result;

/* hvd_wait that also gives the result. Outputs that the caller does not take (hvd_wait, or too
 * little room) are freed. */
HVD_EXPORT int32_t hvd_wait_result(hvd_handle handle, int64_t timeout_ms, hvd_result* result);

/* hvd_submit and hvd_wait without limit in one call: the fastest way for a blocking collective. */
HVD_EXPORT int32_t hvd_run(const hvd_request* request);

/* hvd_run that waits at most timeout_ms (< 0: no limit of its own). HVD_IN_PROGRESS: the collective
 * goes on, and *handle is its handle, for hvd_wait. With every other result *handle is 0. `handle`
 * may be NULL where timeout_ms is < 0. */
HVD_EXPORT int32_t hvd_run_for(const hvd_request* request, int64_t timeout_ms, hvd_handle* handle);

/* ---- registered memory --------------------------------------------------------------------- */

/* Allocates memory that all ranks of this host can reach, so that tensors in it are reduced in
 * place, without a copy. 64-byte aligned, zeroed, owned by the caller until hvd_free(). Usable
 * before hvd_init() and after hvd_shutdown(). NULL when there is no memory (hvd_last_error() says
 * why): use malloc then; everything still works, with one copy more. */
HVD_EXPORT void* hvd_alloc(size_t bytes);

/* NULL is allowed. The memory must not be in use by a pending handle. Memory of a CUDA device is
 * freed once the device is done with all that this process gave it. */
HVD_EXPORT int32_t hvd_free(void* memory);

/* 1 if the whole range is registered memory. */
HVD_EXPORT int32_t hvd_is_registered(const void* memory, size_t bytes);

/* ---- for those who look at a job ------------------------------------------------------------ */

/* An optimizer of this rank has made a step: counted by hvdrun top, marked in a timeline. Costs
 * some nanoseconds, sends nothing, never fails; does nothing before hvd_init(). Any thread. */
HVD_EXPORT int32_t hvd_note_step(void);

#ifdef __cplusplus
}
#endif
#endif /* HVD_HVD_H_ */
