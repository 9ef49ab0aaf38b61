// The part of NCCL that this folder uses, as a table of entry points, with declarations of our own:
// a test compares them with nccl.h if installed. README.md has the table of versions.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_API_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_API_H_

#include <cstddef>

#include "runtime/base/loading/entry_point.h"
#include "runtime/device/cuda/driver_api.h"

namespace hvd {

using NcclResult = int;
using NcclDataType = int;
using NcclReduceOp = int;
using NcclCommHandle = struct NcclCommObject*;

struct NcclUniqueId {
  char bytes[128];
};

// The fields of 2.14.3, which every later version accepts by `size` and `version`.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21403;
  int blocking = 0;
};

inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclCudaError = 1;
inline constexpr NcclResult kNcclSystemError = 2;
inline constexpr NcclResult kNcclInternalError = 3;
inline constexpr NcclResult kNcclInvalidArgument = 4;
inline constexpr NcclResult kNcclInvalidUsage = 5;
inline constexpr NcclResult kNcclRemoteError = 6;
inline constexpr NcclResult kNcclInProgress = 7;
inline constexpr NcclResult kNcclTimeout = 8;  // since 2.30

inline constexpr NcclDataType kNcclInt8 = 0;
inline constexpr NcclDataType kNcclUint8 = 1;
inline constexpr NcclDataType kNcclInt32 = 2;
inline constexpr NcclDataType kNcclInt64 = 4;
inline constexpr NcclDataType kNcclFloat16 = 6;
inline constexpr NcclDataType kNcclFloat32 = 7;
inline constexpr NcclDataType kNcclFloat64 = 8;
inline constexpr NcclDataType kNcclBfloat16 = 9;
inline constexpr NcclDataType kNcclFloat8E4m3 = 10;  // since 2.24.3
inline constexpr NcclDataType kNcclFloat8E5m2 = 11;

inline constexpr NcclReduceOp kNcclSum = 0;
inline constexpr NcclReduceOp kNcclProduct = 1;
inline constexpr NcclReduceOp kNcclMax = 2;
inline constexpr NcclReduceOp kNcclMin = 3;
inline constexpr NcclReduceOp kNcclAverage = 4;

inline constexpr int kNcclScalarOfHost = 1;  // is read before the call returns

// CALL(field, symbol, arguments) of the oldest supported version.
#define HVD_NCCL_CALLS(CALL)                                                                       \
  CALL(get_version, "ncclGetVersion", (int* version))                                              \
  CALL(get_unique_id, "ncclGetUniqueId", (NcclUniqueId * id))                                      \
  CALL(comm_init_rank_config, "ncclCommInitRankConfig",                                            \
       (NcclCommHandle * comm, int ranks, NcclUniqueId id, int rank, NcclConfig* config))          \
  CALL(comm_get_async_error, "ncclCommGetAsyncError", (NcclCommHandle comm, NcclResult * error))   \
  CALL(comm_finalize, "ncclCommFinalize", (NcclCommHandle comm))                                   \
  CALL(comm_destroy, "ncclCommDestroy", (NcclCommHandle comm))                                     \
  CALL(comm_abort, "ncclCommAbort", (NcclCommHandle comm))                                         \
  CALL(group_start, "ncclGroupStart", ())                                                          \
  CALL(group_end, "ncclGroupEnd", ())                                                              \
  CALL(all_reduce, "ncclAllReduce",                                                                \
       (const void* from, void* to, size_t count, NcclDataType type, NcclReduceOp op,              \
        NcclCommHandle comm, CuStream stream))                                                     \
  CALL(reduce, "ncclReduce",                                                                       \
       (const void* from, void* to, size_t count, NcclDataType type, NcclReduceOp op, int root,    \
        NcclCommHandle comm, CuStream stream))                                                     \
  CALL(broadcast, "ncclBroadcast",                                                                 \
       (const void* from, void* to, size_t count, NcclDataType type, int root,                     \
        NcclCommHandle comm, CuStream stream))                                                     \
  CALL(all_gather, "ncclAllGather",                                                                \
       (const void* from, void* to, size_t count, NcclDataType type, NcclCommHandle comm,          \
        CuStream stream))                                                                          \
  CALL(reduce_scatter, "ncclReduceScatter",                                                        \
       (const void* from, void* to, size_t count, NcclDataType type, NcclReduceOp op,              \
        NcclCommHandle comm, CuStream stream))                                                     \
  CALL(send, "ncclSend",                                                                           \
       (const void* from, size_t count, NcclDataType type, int peer, NcclCommHandle comm,          \
        CuStream stream))                                                                          \
  CALL(                                                                                            \
      recv, "ncclRecv",                                                                            \
      (void* to, size_t count, NcclDataType type, int peer, NcclCommHandle comm, CuStream stream)) \
  CALL(red_op_create_pre_mul_sum, "ncclRedOpCreatePreMulSum",                                      \
       (NcclReduceOp * op, void* scalar, NcclDataType type, int residence, NcclCommHandle comm))   \
  CALL(red_op_destroy, "ncclRedOpDestroy", (NcclReduceOp op, NcclCommHandle comm))

// CALL(field, symbol, first version with it, arguments): null in NcclApi if the library is older or
// lacks the symbol anyway (NcclFeatures tells which).
#define HVD_NCCL_OPTIONAL_CALLS(CALL)                                    \
  CALL(mem_alloc, "ncclMemAlloc", 21901, (void** memory, size_t bytes))  \
  CALL(mem_free, "ncclMemFree", 21901, (void* memory))                   \
  CALL(comm_register, "ncclCommRegister", 21901,                         \
       (NcclCommHandle comm, void* memory, size_t bytes, void** handle)) \
  CALL(comm_deregister, "ncclCommDeregister", 21901, (NcclCommHandle comm, void* handle))

struct NcclApi {
#define HVD_ENTRY(field, symbol, arguments) EntryPoint<NcclResult arguments> field{symbol};
#define HVD_OPTIONAL(field, symbol, since, arguments) \
  EntryPoint<NcclResult arguments> field{symbol};
  HVD_NCCL_CALLS(HVD_ENTRY)
  HVD_NCCL_OPTIONAL_CALLS(HVD_OPTIONAL)
#undef HVD_OPTIONAL
#undef HVD_ENTRY
  EntryPoint<const char*(NcclResult result)> get_error_string{"ncclGetErrorString"};
  EntryPoint<const char*(NcclCommHandle comm)> get_last_error{"ncclGetLastError"};
};

// The entries of every version.
template <typename Visitor>
void ForEachEntry(NcclApi& api, Visitor&& visit) {
#define HVD_VISIT(field, symbol, arguments) visit(api.field);
  HVD_NCCL_CALLS(HVD_VISIT)
#undef HVD_VISIT
  visit(api.get_error_string);
  visit(api.get_last_error);
}

// visit(entry, first version with it), for the others.
template <typename Visitor>
void ForEachOptionalEntry(NcclApi& api, Visitor&& visit) {
#define HVD_VISIT(field, symbol, since, arguments) visit(api.field, since);
  HVD_NCCL_OPTIONAL_CALLS(HVD_VISIT)
#undef HVD_VISIT
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_API_H_
