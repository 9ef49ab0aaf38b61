// Registers the operations and their kernels with the TensorFlow of this process when the library
// is loaded, as tf.load_op_library expects.
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/frameworks/tensorflow/collective_kernel.h"
#include "runtime/frameworks/tensorflow/tf_api.h"

namespace hvd::tf {
namespace {

const char* failure = "the library was not loaded by tf.load_op_library";

// A number of the world, queried when the node runs: a graph outlives the worlds of an elastic job.
struct Query {
  int32_t (*ask)(int32_t process_set);
  int32_t process_set;
};

int32_t Size(int32_t set) { return runtime().process_set_size(set); }
int32_t IsIncluded(int32_t set) {
  return runtime().process_set_size(set) < 0 ? -1 : runtime().process_set_rank(set) >= 0;
}
int32_t LocalSize(int32_t) { return runtime().local_size(); }
int32_t Rank(int32_t) { return runtime().rank(); }
int32_t LocalRank(int32_t) { return runtime().local_rank(); }
// Keeps operations that have it as an input from being constant-folded, and orders nothing.
int32_t Token(int32_t) { return 0; }

template <int32_t (*kAsk)(int32_t)>
void* CreateQuery(Construction* construction) {
  Status* const status = api().NewStatus();
  auto* query = new Query{kAsk, 0};
  api().OpKernelConstruction_GetAttrInt32(construction, "process_set_id", &query->process_set,
                                          status);
  if (api().GetCode(status) != kOk) api().OpKernelConstruction_Failure(construction, status);
  api().DeleteStatus(status);
  return query;
}

void Answer(void* kernel, Context* context) {
  const auto* query = static_cast<Query*>(kernel);
  const int32_t number = query->ask(query->process_set);
  Status* const status = api().NewStatus();
  if (number < 0) {
    const bool joined = runtime().is_initialized() == 1;
    api().SetStatus(status, kFailedPrecondition,
                    joined
                        ? "there is no such process set"
                        : "Horovod has not been initialized on this rank; call hvd.init() first");
  } else {
    Tensor* const output = api().AllocateOutput(context, 0, kInt32, nullptr, 0, 4, status);
    if (api().GetCode(status) == kOk) {
      *static_cast<int32_t*>(api().TensorData(output)) = number;
      api().DeleteTensor(output);
    }
  }
  if (api().GetCode(status) != kOk) api().OpKernelContext_Failure(context, status);
  api().DeleteStatus(status);
}

void DeleteQuery(void* kernel) { delete static_cast<Query*>(kernel); }

template <hvd_collective kCollective>
void* CreateCollective(Construction* construction) {
  return CollectiveKernel::Create(construction, kCollective);
}

void ComputeCollective(void* kernel, Context* context, DoneArgument* done) {
  static_cast<CollectiveKernel*>(kernel)->ComputeAsync(context, done);
}

void DeleteCollective(void* kernel) { delete static_cast<CollectiveKernel*>(kernel); }

// ---- shapes

void Scalar(ShapeContext* context, Status* status) {
  ShapeHandle* const scalar = api().ShapeInferenceContextScalar(context);
  api().ShapeInferenceContextSetOutput(context, 0, scalar, status);
  api().DeleteShapeHandle(scalar);
}

void LikeInputs(ShapeContext* context, Status* status) {
  const auto tensors = static_cast<int>(api().ShapeInferenceContextNumInputs(context)) - 1;
  ShapeHandle* const shape = api().NewShapeHandle();
  for (int i = 0; i < tensors && api().GetCode(status) == kOk; ++i) {
    api().ShapeInferenceContextGetInput(context, i, shape, status);
    if (api().GetCode(status) == kOk)
      api().ShapeInferenceContextSetOutput(context, i, shape, status);
  }
  api().DeleteShapeHandle(shape);
}

void Unknown(ShapeContext* context, Status* status) {
  api().ShapeInferenceContextSetUnknownShape(context, status);
}

// ---- registration

class Operation {
 public:
  Operation(std::string name, Status* status)
      : name_(std::move(name)),
        status_(status),
        builder_(api().NewOpDefinitionBuilder(name_.c_str())) {}

  Operation& Attribute(const std::string& text) {
    api().OpDefinitionBuilderAddAttr(builder_, text.c_str());
    return *this;
  }
  Operation& Input(const std::string& name, const std::string& type) {
    api().OpDefinitionBuilderAddInput(builder_, (name + ": " + type).c_str());
    arguments_.push_back(name);
    return *this;
  }
  Operation& Output(const std::string& name, const std::string& type) {
    api().OpDefinitionBuilderAddOutput(builder_, (name + ": " + type).c_str());
    arguments_.push_back(name);
    return *this;
  }
  Operation& Stateful() {
    api().OpDefinitionBuilderSetIsStateful(builder_, true);
    return *this;
  }
  Operation& Shapes(InferShapes infer) {
    api().OpDefinitionBuilderSetShapeInferenceFunction(builder_, infer);
    return *this;
  }

  template <hvd_collective kCollective>
  void RegisterCollective() {
    Register([](const char* name, const char* device) {
      return api().NewAsyncKernelBuilder(name, device, &CreateCollective<kCollective>,
                                         &ComputeCollective, &DeleteCollective);
    });
  }
  template <int32_t (*kAsk)(int32_t)>
  void RegisterQuery() {
    Register([](const char* name, const char* device) {
      return api().NewKernelBuilder(name, device, &CreateQuery<kAsk>, &Answer, &DeleteQuery);
    });
  }

 private:
  template <typename MakeBuilder>
  void Register(MakeBuilder make) {
    if (api().GetCode(status_) == kOk) api().RegisterOpDefinition(builder_, status_);
    // A node on a GPU has its tensors in host memory; TensorFlow copies them there.
    for (const char* device : {"CPU", "GPU"}) {
      if (api().GetCode(status_) != kOk) return;
      KernelBuilder* const kernel = make(name_.c_str(), device);
      if (*device == 'G')
        for (const std::string& argument : arguments_)
          api().KernelBuilder_HostMemory(kernel, argument.c_str());
      api().RegisterKernelBuilder((name_ + device).c_str(), kernel, status_);
    }
  }

  const std::string name_;
  Status* const status_;
  OpDefinitionBuilder* const builder_;
  std::vector<std::string> arguments_;
};

constexpr const char* kTypes =
    "{uint8, int8, uint16, int16, int32, int64, half, bfloat16, float, double, bool}";

template <hvd_collective kCollective>
void RegisterCollective(const std::string& name, bool grouped, InferShapes shapes, Status* status) {
  const std::string types =
      std::string("T: ") + (grouped ? "list(" : "") + kTypes + (grouped ? ") >= 1" : "");
  Operation operation((grouped ? "HorovodGrouped" : "Horovod") + name, status);
  operation.Attribute(types)
      .Attribute("tensor_name: string = ''")
      .Attribute("unique_name: string = ''")
      .Attribute("ignore_name_scope: bool = false")
      .Attribute("eager: bool = false")
      .Attribute("process_set_id: int = 0");
  if (kCollective == HVD_ALLREDUCE || kCollective == HVD_REDUCESCATTER)
    operation.Attribute("reduce_op: int")
        .Attribute("prescale: string = '1'")
        .Attribute("postscale: string = '1'");
  if (kCollective == HVD_BROADCAST) operation.Attribute("root_rank: int");
  operation.Input(grouped ? "tensors" : "tensor", "T");
  if (kCollective == HVD_ALLTOALL) operation.Input("splits", "int32");
  operation.Input("token", "int32");
  operation.Output(grouped ? "outputs" : "output", "T");
  if (kCollective == HVD_ALLTOALL) operation.Output("received_splits", "int32");
  operation.Shapes(shapes).template RegisterCollective<kCollective>();
}

template <int32_t (*kAsk)(int32_t)>
void RegisterQuery(const char* name, Status* status) {
  Operation operation(name, status);
  operation.Attribute("process_set_id: int = 0")
      .Output("output", "int32")
      .Shapes(&Scalar)
      .Stateful();
  operation.RegisterQuery<kAsk>();
}

void RegisterAll(Status* status) {
  for (const bool grouped : {false, true}) {
    RegisterCollective<HVD_ALLREDUCE>("Allreduce", grouped, &LikeInputs, status);
    RegisterCollective<HVD_BROADCAST>("Broadcast", grouped, &LikeInputs, status);
    RegisterCollective<HVD_ALLGATHER>("Allgather", grouped, &Unknown, status);
    RegisterCollective<HVD_REDUCESCATTER>("Reducescatter", grouped, &Unknown, status);
  }
  RegisterCollective<HVD_ALLTOALL>("Alltoall", false, &Unknown, status);
  Operation join("HorovodJoin", status);
  join.Input("token", "int32").Output("output", "int32").Shapes(&Scalar).Stateful();
  join.RegisterCollective<HVD_JOIN>();
  RegisterQuery<&Size>("HorovodSize", status);
  RegisterQuery<&IsIncluded>("HorovodProcessSetIncluded", status);
  RegisterQuery<&LocalSize>("HorovodLocalSize", status);
  RegisterQuery<&Rank>("HorovodRank", status);
  RegisterQuery<&LocalRank>("HorovodLocalRank", status);
  RegisterQuery<&Token>("HorovodToken", status);
}

__attribute__((constructor)) void RegisterOnLoad() {
  failure = LoadApi();
  if (*failure != '\0') return;
  Status* const status = api().NewStatus();
  RegisterAll(status);
  if (api().GetCode(status) != kOk) failure = (new std::string(api().Message(status)))->c_str();
  api().DeleteStatus(status);
}

}  // namespace
}  // namespace hvd::tf

// Why the operations are unavailable; "" if they are available.
extern "C" HVD_EXPORT const char* hvd_tf_failure(void);
extern "C" const char* hvd_tf_failure(void) { return hvd::tf::failure; }
