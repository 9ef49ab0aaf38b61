#include "runtime/frameworks/tensorflow/tf_api.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>

namespace hvd::tf {
namespace {

Api found;
RuntimeEntries found_runtime;

// Both are loaded RTLD_LOCAL, so their symbols are found only through their own handles.
struct Search {
  const char* name;
  std::string path;
};

int Match(dl_phdr_info* info, size_t, void* search) {
  auto* const sought = static_cast<Search*>(search);
  if (std::strstr(info->dlpi_name, sought->name) == nullptr) return 0;
  sought->path = info->dlpi_name;
  return 1;
}

// Null if no such library is loaded.
void* Loaded(const char* name) {
  Search search{name, ""};
  ::dl_iterate_phdr(&Match, &search);
  return search.path.empty() ? nullptr : ::dlopen(search.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

std::string* Failure() {
  static auto* text = new std::string;
  return text;
}

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function* place) {
    FindOptional(name, place);
    if (*place == nullptr && missing_.empty()) missing_ = name;
  }
  template <typename Function>
  void FindOptional(const char* name, Function* place) {
    void* const symbol = ::dlsym(library_, name);
    std::memcpy(place, &symbol, sizeof symbol);
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void FindAll(Symbols* symbols) {
#define HVD_TF_FIND(name) symbols->Find("TF_" #name, &found.name)
  HVD_TF_FIND(NewStatus);
  HVD_TF_FIND(DeleteStatus);
  HVD_TF_FIND(SetStatus);
  HVD_TF_FIND(GetCode);
  HVD_TF_FIND(Message);
  HVD_TF_FIND(TensorType);
  HVD_TF_FIND(NumDims);
  HVD_TF_FIND(Dim);
  HVD_TF_FIND(TensorByteSize);
  HVD_TF_FIND(TensorData);
  HVD_TF_FIND(NewTensor);
  HVD_TF_FIND(DeleteTensor);
  HVD_TF_FIND(DataTypeSize);
  HVD_TF_FIND(NewOpDefinitionBuilder);
  HVD_TF_FIND(OpDefinitionBuilderAddAttr);
  HVD_TF_FIND(OpDefinitionBuilderAddInput);
  HVD_TF_FIND(OpDefinitionBuilderAddOutput);
  HVD_TF_FIND(OpDefinitionBuilderSetIsStateful);
  HVD_TF_FIND(OpDefinitionBuilderSetShapeInferenceFunction);
  HVD_TF_FIND(RegisterOpDefinition);
  HVD_TF_FIND(ShapeInferenceContextNumInputs);
  HVD_TF_FIND(NewShapeHandle);
  HVD_TF_FIND(DeleteShapeHandle);
  HVD_TF_FIND(ShapeInferenceContextGetInput);
  HVD_TF_FIND(ShapeInferenceContextSetOutput);
  HVD_TF_FIND(ShapeInferenceContextScalar);
  HVD_TF_FIND(ShapeInferenceContextSetUnknownShape);
  HVD_TF_FIND(NewKernelBuilder);
  HVD_TF_FIND(NewAsyncKernelBuilder);
  HVD_TF_FIND(KernelBuilder_HostMemory);
  HVD_TF_FIND(RegisterKernelBuilder);
  HVD_TF_FIND(OpKernelConstruction_GetAttrInt32);
  HVD_TF_FIND(OpKernelConstruction_GetAttrBool);
  HVD_TF_FIND(OpKernelConstruction_GetAttrSize);
  HVD_TF_FIND(OpKernelConstruction_GetAttrString);
  HVD_TF_FIND(OpKernelConstruction_GetName);
  HVD_TF_FIND(OpKernelConstruction_Failure);
  HVD_TF_FIND(NumInputs);
  HVD_TF_FIND(GetInput);
  HVD_TF_FIND(SetOutput);
  HVD_TF_FIND(AllocateOutput);
  HVD_TF_FIND(ForwardInputOrAllocateOutput);
  HVD_TF_FIND(OpKernelContext_Failure);
#undef HVD_TF_FIND
  symbols->FindOptional("TF_GetIterId", &found.GetIterId);
}

void FindRuntime(Symbols* symbols) {
  symbols->Find("hvd_submit", &found_runtime.submit);
  symbols->Find("hvd_free", &found_runtime.free);
  symbols->Find("hvd_last_error", &found_runtime.last_error);
  symbols->Find("hvd_is_initialized", &found_runtime.is_initialized);
  symbols->Find("hvd_rank", &found_runtime.rank);
  symbols->Find("hvd_local_rank", &found_runtime.local_rank);
  symbols->Find("hvd_local_size", &found_runtime.local_size);
  symbols->Find("hvd_process_set_size", &found_runtime.process_set_size);
  symbols->Find("hvd_process_set_rank", &found_runtime.process_set_rank);
}

}  // namespace

const char* LoadApi() {
  void* const framework = Loaded("libtensorflow_framework.so");
  void* const ours = Loaded("libhvd.so");
  if (framework == nullptr || ours == nullptr) {
    *Failure() = framework == nullptr
                     ? "libtensorflow_framework.so is not loaded; import tensorflow first"
                     : "libhvd.so is not loaded; import horovod first";
    return Failure()->c_str();
  }
  Symbols symbols(framework);
  FindAll(&symbols);
  if (!symbols.missing().empty()) {
    *Failure() =
        "this TensorFlow does not have " + symbols.missing() + ", which 2.13 and newer have";
    return Failure()->c_str();
  }
  Symbols runtime_symbols(ours);
  FindRuntime(&runtime_symbols);
  if (runtime_symbols.missing().empty()) return "";
  *Failure() = "libhvd.so does not have " + runtime_symbols.missing() + ": it is of another build";
  return Failure()->c_str();
}

const Api& api() { return found; }

const RuntimeEntries& runtime() { return found_runtime; }

Done::Done(DoneArgument* argument) {
  static_assert(sizeof(Function) == 4 * sizeof(void*));
  std::memcpy(&function_, argument, sizeof function_);
  // What a moved-from std::function is: empty.
  auto* const given = reinterpret_cast<Function*>(argument);
  given->manager = nullptr;
  given->invoker = nullptr;
}

void Done::Run() {
  constexpr int kDestroyFunctor = 3;
  function_.invoker(&function_.functor);
  if (function_.manager != nullptr)
    function_.manager(&function_.functor, &function_.functor, kDestroyFunctor);
}

}  // namespace hvd::tf
