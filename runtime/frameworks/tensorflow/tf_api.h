// The functions of TensorFlow's stable C API used by the operations, resolved at run time in the
// imported TensorFlow, and those of libhvd.so. Nothing is linked with either. Types and signatures
// follow tensorflow/c/{ops,kernels,tf_tensor,tf_status}.h.
#ifndef HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_TF_API_H_
#define HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_TF_API_H_

#include <cstddef>
#include <cstdint>

#include "hvd/hvd.h"

namespace hvd::tf {

struct Status;
struct Tensor;
struct OpDefinitionBuilder;
struct ShapeContext;
struct ShapeHandle;
struct KernelBuilder;
struct Construction;
struct Context;
struct DoneArgument;

using DataType = int;  // a C enum
inline constexpr DataType kInt32 = 3;

// TF_Code
inline constexpr int kOk = 0;
inline constexpr int kUnknown = 2;
inline constexpr int kInvalidArgument = 3;
inline constexpr int kResourceExhausted = 8;
inline constexpr int kFailedPrecondition = 9;
inline constexpr int kUnimplemented = 12;
inline constexpr int kInternal = 13;

struct StringView {
  const char* data;
  size_t length;
};

using CreateKernel = void* (*)(Construction*);
using Compute = void (*)(void* kernel, Context*);
using ComputeAsync = void (*)(void* kernel, Context*, DoneArgument*);
using DeleteKernel = void (*)(void* kernel);
using Deallocate = void (*)(void* data, size_t length, void* arg);
using InferShapes = void (*)(ShapeContext*, Status*);

struct Api {
  Status* (*NewStatus)();
  void (*DeleteStatus)(Status*);
  void (*SetStatus)(Status*, int code, const char* message);
  int (*GetCode)(const Status*);
  const char* (*Message)(const Status*);

  DataType (*TensorType)(const Tensor*);
  int (*NumDims)(const Tensor*);
  int64_t (*Dim)(const Tensor*, int dimension);
  size_t (*TensorByteSize)(const Tensor*);
  void* (*TensorData)(const Tensor*);
  Tensor* (*NewTensor)(DataType, const int64_t* dims, int count, void* data, size_t length,
                       Deallocate, void* arg);
  void (*DeleteTensor)(Tensor*);
  size_t (*DataTypeSize)(DataType);

  OpDefinitionBuilder* (*NewOpDefinitionBuilder)(const char* name);
  void (*OpDefinitionBuilderAddAttr)(OpDefinitionBuilder*, const char*);
  void (*OpDefinitionBuilderAddInput)(OpDefinitionBuilder*, const char*);
  void (*OpDefinitionBuilderAddOutput)(OpDefinitionBuilder*, const char*);
  void (*OpDefinitionBuilderSetIsStateful)(OpDefinitionBuilder*, bool);
  void (*OpDefinitionBuilderSetShapeInferenceFunction)(OpDefinitionBuilder*, InferShapes);
  void (*RegisterOpDefinition)(OpDefinitionBuilder*, Status*);
  int64_t (*ShapeInferenceContextNumInputs)(ShapeContext*);
  ShapeHandle* (*NewShapeHandle)();
  void (*DeleteShapeHandle)(ShapeHandle*);
  void (*ShapeInferenceContextGetInput)(ShapeContext*, int, ShapeHandle*, Status*);
  void (*ShapeInferenceContextSetOutput)(ShapeContext*, int, ShapeHandle*, Status*);
  ShapeHandle* (*ShapeInferenceContextScalar)(ShapeContext*);
  void (*ShapeInferenceContextSetUnknownShape)(ShapeContext*, Status*);

  KernelBuilder* (*NewKernelBuilder)(const char* op, const char* device, CreateKernel, Compute,
                                     DeleteKernel);
  KernelBuilder* (*NewAsyncKernelBuilder)(const char* op, const char* device, CreateKernel,
                                          ComputeAsync, DeleteKernel);
  void (*KernelBuilder_HostMemory)(KernelBuilder*, const char* argument);
  void (*RegisterKernelBuilder)(const char* name, KernelBuilder*, Status*);
  void (*OpKernelConstruction_GetAttrInt32)(Construction*, const char*, int32_t*, Status*);
  void (*OpKernelConstruction_GetAttrBool)(Construction*, const char*, unsigned char*, Status*);
  void (*OpKernelConstruction_GetAttrSize)(Construction*, const char*, int32_t* list,
                                           int32_t* total, Status*);
  void (*OpKernelConstruction_GetAttrString)(Construction*, const char*, char*, size_t, Status*);
  StringView (*OpKernelConstruction_GetName)(Construction*);
  void (*OpKernelConstruction_Failure)(Construction*, Status*);

  int (*NumInputs)(Context*);
  void (*GetInput)(Context*, int, Tensor**, Status*);
  void (*SetOutput)(Context*, int, const Tensor*, Status*);
  Tensor* (*AllocateOutput)(Context*, int, DataType, const int64_t* dims, int count, size_t length,
                            Status*);
  Tensor* (*ForwardInputOrAllocateOutput)(Context*, const int* candidates, int count, int output,
                                          const int64_t* dims, int dim_count, int* forwarded,
                                          Status*);
  void (*OpKernelContext_Failure)(Context*, Status*);
  // The current loop iteration of a node; null if this TensorFlow lacks it.
  int64_t (*GetIterId)(Context*);
};

// The functions used of the libhvd.so that Python has loaded.
struct RuntimeEntries {
  decltype(&hvd_submit) submit;
  decltype(&hvd_free) free;
  decltype(&hvd_last_error) last_error;
  decltype(&hvd_is_initialized) is_initialized;
  decltype(&hvd_rank) rank;
  decltype(&hvd_local_rank) local_rank;
  decltype(&hvd_local_size) local_size;
  decltype(&hvd_process_set_size) process_set_size;
  decltype(&hvd_process_set_rank) process_set_rank;
};

// Resolves both APIs. Returns why the operations are unavailable; "" on success.
const char* LoadApi();

// Valid after LoadApi.
const Api& api();
const RuntimeEntries& runtime();

// The completion callback of an asynchronous kernel: a std::function<void()> of TensorFlow's
// libstdc++ on the stack of the kernel's caller, which must be moved out before the kernel returns.
// Its four words are moved here by hand, since our C++ library may differ from TensorFlow's.
class Done {
 public:
  explicit Done(DoneArgument* argument);
  Done(const Done&) = delete;
  // Calls it, once.
  void Run();

 private:
  struct Function {
    void* functor[2];
    bool (*manager)(void* target, const void* source, int operation);
    void (*invoker)(const void* functor);
  };
  Function function_;
};

}  // namespace hvd::tf

#endif  // HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_TF_API_H_
