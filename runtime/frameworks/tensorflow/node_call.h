// NodeCall: one call of a CollectiveKernel, from its start until completion is reported to
// TensorFlow.
#ifndef HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_NODE_CALL_H_
#define HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_NODE_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/frameworks/tensorflow/tf_api.h"

namespace hvd::tf {

class NodeCall {
 public:
  NodeCall(Context* context, DoneArgument* done, hvd_collective collective);

  // Adds the inputs, and the outputs if their shapes are known. Submit reports errors.
  void AddTensors();
  void AddSplits(int input);

  // The non-tensor parts of the request; `name` "": named by the runtime.
  hvd_request& request() { return request_; }
  std::string& name() { return name_; }

  // Submits the call, now or once the previous call of the same name has ended. Deletes itself when
  // complete.
  void Submit();

 private:
  static void OnDone(void* arg, int32_t status, const char* sentence, hvd_result* result);
  ~NodeCall();
  NodeCall(const NodeCall&) = delete;

  void AddTensor(int index);
  void Start();
  void End(int32_t status, const char* sentence, hvd_result* result);
  void Give(const hvd_result& result);
  void SetMadeOutput(int index, hvd_output output);
  bool failed() const { return api().GetCode(status_) != kOk; }
  bool makes_output() const {
    return collective_ == HVD_ALLGATHER || collective_ == HVD_ALLTOALL ||
           collective_ == HVD_REDUCESCATTER;
  }

  Context* const context_;
  Done done_;
  const hvd_collective collective_;
  Status* const status_;
  hvd_request request_ = HVD_REQUEST_INIT;
  std::string name_;
  std::vector<hvd_tensor> tensors_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<DataType> types_;
  std::vector<Tensor*> held_;
  std::vector<int64_t> splits_;
};

}  // namespace hvd::tf

#endif  // HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_NODE_CALL_H_
