/* hvd.h: the C ABI of libhvd.so, the collective runtime inside each worker. The only public header.
 *
 * Conventions
 *   - Every function may be called from any thread. None throws, none aborts on bad input.
 *   - Functions that can fail return an hvd_status; HVD_OK is 0. hvd_last_error() then gives the sentence that says
 *     who, where, what, because and what to try; it is kept per thread until the next failing call of that thread.
 *   - Structs begin with struct_size (sizeof at the caller's compile time): fields are only ever appended, so a
 *     caller built against an older header keeps working.
 *   - Ranks are ranks of the whole world, also inside a process set. Sizes are in bytes, times in milliseconds.
 *   - A process that was forked from one that called hvd_init() holds nothing of the runtime: each call there
 *     returns HVD_FORKED (queries return -1).
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
  HVD_IN_PROGRESS = 1, /* hvd_wait ran out of its time; the handle stays valid */
  HVD_INVALID_ARGUMENT =
      2, /* the call is wrong on this rank; nothing was submitted (Python: ValueError) */
  HVD_NOT_INITIALIZED =
      3, /* hvd_init() has not been called, or hvd_shutdown() has (Python: ValueError) */
  HVD_DUPLICATE_NAME = 4, /* a tensor of this name is in flight on this rank (Python: ValueError) */
  HVD_MISMATCH = 5,       /* ranks disagree about one tensor (Python: HorovodInternalError) */
  HVD_ABORTED =
      6, /* the world broke: a peer died, left, or the job ends (Python: HorovodInternalError) */
  HVD_UNSUPPORTED = 7, /* not built or not implemented; the sentence says which piece is missing */
  HVD_OUT_OF_MEMORY = 8,
  HVD_FORKED = 9,   /* called in a child forked after hvd_init() */
  HVD_INTERNAL = 10 /* a defect of the runtime or a system call that failed */
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

/* ---- library ------------------------------------------------------------------------------------------------- */

HVD_EXPORT int32_t hvd_abi_version(void);        /* HVD_ABI_VERSION of the library */
HVD_EXPORT const char* hvd_version_string(void); /* "0.1.0"; static storage */
HVD_EXPORT const char* hvd_last_error(void);     /* this thread's last error sentence, "" if none */
HVD_EXPORT const char* hvd_status_name(int32_t status); /* "HVD_ABORTED"; static storage */

/* 1 if the feature is in this build and can be loaded, else 0. Features: "shm" "gloo" "mpi" "nccl" "cuda" "rocm"
 * "ccl" "ddl". */
HVD_EXPORT int32_t hvd_built(const char* feature);

/* ---- world --------------------------------------------------------------------------------------------------- */

typedef struct hvd_init_options {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  int64_t
      timeout_ms; /* how long to wait for the other ranks' hvd_init(); <= 0: no limit of its own (a warning
                               once a minute; the launcher ends the wait when a rank can no longer come) */
  /* Process sets to register with the world, the same on every rank: they get the ids 1, 2, ... `process_set_ranks`
   * holds their world ranks one set after the other, `process_set_sizes` how many each has. */
  const int32_t* process_set_ranks;
  const int32_t* process_set_sizes;
  int32_t process_set_count;
  int32_t reserved;
  /* A communicator of MPI (MPI_Comm* of the application's MPI library) that is to be the world, or NULL. */
  const void* mpi_comm;
  /* These of the ranks that were started are to be the world, in their order; each names the ranks of its own world. NULL:
   * all of them. Fewer need ranks that mpirun started. */
  const int32_t* ranks;
  int32_t rank_count;
  int32_t reserved2;
} hvd_init_options;

/* Joins the world described by the environment (HVD_AGENT, set by hvdrun; variables of other launchers), or makes a world
 * of one. Idempotent while initialised. Blocks until every rank has called it. `options` may be NULL. */
HVD_EXPORT int32_t hvd_init(const hvd_init_options* options);

/* Leaves the world: pending handles fail with HVD_ABORTED here, and on other ranks if they need this rank. Does
 * nothing when not initialised. hvd_init() may follow, any number of times. Registered memory stays valid. */
HVD_EXPORT int32_t hvd_shutdown(void);

HVD_EXPORT int32_t hvd_is_initialized(void);

/* Each returns -1 when not initialised. */
HVD_EXPORT int32_t hvd_rank(void);
HVD_EXPORT int32_t hvd_size(void);
HVD_EXPORT int32_t hvd_local_rank(void);
HVD_EXPORT int32_t hvd_local_size(void);
HVD_EXPORT int32_t hvd_cross_rank(void);
HVD_EXPORT int32_t hvd_cross_size(void);
HVD_EXPORT int32_t hvd_is_homogeneous(void); /* 1: every host has the same number of ranks */
HVD_EXPORT int64_t hvd_generation(void);          /* membership number, grows with each world joined */
HVD_EXPORT int64_t hvd_epoch(void);               /* the same, under the name of earlier releases */

/* 1 if the feature carries data of this world, else 0; -1 when not initialised. Features as in hvd_built, and "mpi_threads":
 * over MPI, which several threads may call at once. */
HVD_EXPORT int32_t hvd_enabled(const char* feature);

/* ---- process sets ---------------------------------------------------------------------------------------------- */

/* Process sets. Id 0 is the world. Rank within the set is -1 for a non-member, size is -1 for an unknown set. */
HVD_EXPORT int32_t hvd_process_set_size(int32_t process_set);
HVD_EXPORT int32_t hvd_process_set_rank(int32_t process_set);

/* Registers a set on all ranks of the world: every rank calls it with the same world ranks (any order, none twice) and gets
 * the same id, the smallest that is free. Blocks until all have called it. A set of the same ranks that exists already,
 * ranks outside the world and doubles are HVD_INVALID_ARGUMENT; different ranks on different callers HVD_MISMATCH. */
HVD_EXPORT int32_t hvd_add_process_set(const int32_t* ranks, int32_t count, int32_t* id);

/* Removes a set on all ranks: every rank calls it. Blocks until all have. What is pending on the set fails with
 * HVD_ABORTED. HVD_INVALID_ARGUMENT for the world and for an unknown id. */
HVD_EXPORT int32_t hvd_remove_process_set(int32_t id);

/* Writes the ids of all sets, ascending, at most `capacity`; returns how many there are, -1 when not initialised. */
HVD_EXPORT int32_t hvd_process_set_ids(int32_t* ids, int32_t capacity);

/* Writes the world ranks of a set, ascending, at most `capacity`; returns how many there are, -1 for an unknown set. */
HVD_EXPORT int32_t hvd_process_set_ranks(int32_t id, int32_t* ranks, int32_t capacity);

/* ---- collectives --------------------------------------------------------------------------------------------- */

typedef struct hvd_tensor {
  uint32_t struct_size;
  int32_t dtype; /* hvd_dtype */
  const void*
      input; /* contiguous elements; read until the handle is done; may be NULL when count is 0 */
  void*
      output; /* contiguous; may equal input (in place), else must not overlap it; written until done. NULL for an
                 allgather, alltoall or reducescatter: the runtime makes the memory, see hvd_wait_result */
  const int64_t*
      shape;    /* ndim extents, each >= 0; copied by the call. ndim 0 is a scalar (one element) */
  int32_t ndim; /* 0 to 8 */
  int32_t device_kind;  /* hvd_device_kind */
  int32_t device_index; /* ordinal, 0 for the host */
  int32_t reserved;
  void* stream; /* CUDA stream the tensor is produced on, NULL for the host */
} hvd_tensor;

typedef struct hvd_request {
  uint32_t struct_size;
  int32_t collective; /* hvd_collective */
  const char*
      name; /* matches this tensor across ranks; 1 to 16,384 bytes UTF-8; copied. NULL: a name is made
                               from the collective and a count of the process set's unnamed ones, so unnamed calls on
                               a set must come in the same order on every rank of it */
  const hvd_tensor* tensor; /* NULL for a barrier */
  int32_t reduce_op;        /* hvd_reduce_op; allreduce and reducescatter */
  int32_t root_rank;        /* world rank; broadcast */
  int32_t process_set;      /* 0: the world */
  uint32_t flags;           /* 0 */
  double prescale;          /* factor before reducing; 0.0 is read as 0.0, so set 1.0 for none */
  double postscale;         /* factor after reducing */
  /* A group: `tensor` points to this many tensors, which succeed or fail together under one name and one handle. 0 is read
   * as 1. Tensors lie sizeof(hvd_tensor) (their own struct_size) apart. Not for barrier, join and alltoall. */
  int32_t tensor_count;
  int32_t splits_count; /* alltoall: 0 (equal shares) or the size of the process set */
  const int64_t*
      splits; /* rows of dimension 0 for each member, in order of rank; their sum is at most dimension 0 */
} hvd_request;

typedef uint64_t hvd_handle; /* 0 is never a valid handle */

/* Starts a collective, which is never finished inside this call. Errors of the call itself are returned now and leave nothing
 * behind; disagreement between ranks and deaths come from hvd_wait. The tensor's memory must stay valid until the handle is
 * done. A name is taken until hvd_wait has ended or hvd_poll said 1; where the collective has finished without either, until
 * the next call of this process that submits, polls or waits has looked for duplicates. */
HVD_EXPORT int32_t hvd_submit(const hvd_request* request, hvd_handle* handle);

/* *done = 1 when the collective had finished (with success or an error) when the call came: then hvd_wait returns at once. 0
 * at least once for a fresh handle. Makes progress. */
HVD_EXPORT int32_t hvd_poll(hvd_handle handle, int32_t* done);

/* Waits at most timeout_ms (< 0: without a limit of its own) and makes progress meanwhile. Any result other than
 * HVD_IN_PROGRESS forgets the handle. An unknown handle is HVD_INVALID_ARGUMENT; one of a world that was shut down is
 * HVD_ABORTED, also after the next hvd_init(). */
HVD_EXPORT int32_t hvd_wait(hvd_handle handle, int64_t timeout_ms);

/* One output of a finished collective. */
typedef struct hvd_output {
  uint32_t struct_size;
  int32_t ndim;
  void*
      data; /* memory the runtime made because the request had none: the caller's from now on, to be given back with
                 hvd_free(). NULL when the caller gave the memory, or when there are no elements. */
  int64_t shape[8];
} hvd_output;

/* What a finished collective has to say beside its data. The caller sets struct_size, the pointers and the counts, which
 * say how much room there is; hvd_wait_result writes how much there was. */
typedef struct hvd_result {
  uint32_t struct_size;
  int32_t output_count;
  hvd_output* outputs;      /* one per tensor of the request, or NULL */
  int64_t* received_splits; /* alltoall: rows that came from each member, or NULL */
  int32_t received_splits_count;
  int32_t last_joined_rank; /* join: world rank that came last; else -1 */
} hvd_result;

/* hvd_wait that also gives the result. Outputs nobody asks for (hvd_wait, too little room) are freed. */
HVD_EXPORT int32_t hvd_wait_result(hvd_handle handle, int64_t timeout_ms, hvd_result* result);

/* hvd_submit and hvd_wait without limit in one call: the fastest way for a blocking collective. */
HVD_EXPORT int32_t hvd_run(const hvd_request* request);

/* ---- registered memory --------------------------------------------------------------------------------------- */

/* Memory that all ranks of this host can reach, so that tensors in it are reduced where they are. 64-byte aligned,
 * zeroed, owned by the caller until hvd_free(). Usable before hvd_init() and after hvd_shutdown(). NULL when there is
 * no memory (hvd_last_error() says why): use malloc then; everything still works, with one copy more. */
HVD_EXPORT void* hvd_alloc(size_t bytes);
HVD_EXPORT int32_t
hvd_free(void* memory); /* NULL is allowed; must not be in use by a pending handle */
HVD_EXPORT int32_t hvd_is_registered(const void* memory,
                                     size_t bytes); /* 1 if the whole range is */

#ifdef __cplusplus
}
#endif
#endif /* HVD_HVD_H_ */
