// The part of XLA's foreign function interface (C structs, stable since API version 0.1) that a
// collective needs. XLA sets each struct's size, which shows whether an older XLA lacks a field;
// such fields are not read.
#ifndef HVD_RUNTIME_FRAMEWORKS_JAX_XLA_FFI_H_
#define HVD_RUNTIME_FRAMEWORKS_JAX_XLA_FFI_H_

#include <cstddef>
#include <cstdint>

namespace hvd::xla {

// The version reported by handlers; accepted by every XLA since JAX 0.4.31.
inline constexpr int kMajorVersion = 0;
inline constexpr int kMinorVersion = 1;

enum ElementType : int {
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBf16 = 16,
  kToken = 17,
  kF8E5M2 = 19,
  kF8E4M3Fn = 20
};

enum ErrorCode : int {
  kInvalidArgument = 3,
  kFailedPrecondition = 9,
  kAborted = 10,
  kInternal = 13
};

inline constexpr int kExecuteStage = 3;
inline constexpr int kMetadataExtension = 1;

struct Error;
struct Future;
struct Context;

struct Extension {
  size_t struct_size;
  int type;
  Extension* next;
};

struct ApiVersion {
  size_t struct_size;
  Extension* extension_start;
  int major_version;
  int minor_version;
};

struct Metadata {
  size_t struct_size;
  ApiVersion api_version;
  uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Buffer {
  size_t struct_size;
  Extension* extension_start;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

struct ByteSpan {
  const char* ptr;
  size_t len;
};

struct Scalar {
  int dtype;
  void* value;
};

struct Buffers {  // arguments or results
  size_t struct_size;
  Extension* extension_start;
  int64_t size;
  int* types;
  Buffer** values;
};

struct Attributes {
  size_t struct_size;
  Extension* extension_start;
  int64_t size;
  int* types;
  ByteSpan** names;
  void** values;
};

struct ErrorCreateArgs {
  size_t struct_size;
  Extension* extension_start;
  const char* message;
  int code;
};

struct FutureCreateArgs {
  size_t struct_size;
  Extension* extension_start;
  Future* future;
};

struct FutureSetAvailableArgs {
  size_t struct_size;
  Extension* extension_start;
  Future* future;
};

struct FutureSetErrorArgs {
  size_t struct_size;
  Extension* extension_start;
  Future* future;
  Error* error;  // ownership passes to XLA
};

struct FfiApi {
  size_t struct_size;
  Extension* extension_start;
  ApiVersion version;
  const void* internal_api;
  Error* (*error_create)(ErrorCreateArgs*);
  void* unused[12];  // error messages, registration, streams, state, memory, thread pools
  Error* (*future_create)(FutureCreateArgs*);
  Error* (*future_set_available)(FutureSetAvailableArgs*);
  Error* (*future_set_error)(FutureSetErrorArgs*);
};

struct CallFrame {
  size_t struct_size;
  Extension* extension_start;
  const FfiApi* api;
  Context* context;
  int stage;
  Buffers args;
  Buffers results;
  Attributes attributes;
  Future* future;
};

}  // namespace hvd::xla

#endif  // HVD_RUNTIME_FRAMEWORKS_JAX_XLA_FFI_H_
