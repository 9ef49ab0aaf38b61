#include "launcher/stall/verdict/foreign_call.h"

#include <algorithm>
#include <array>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Functions in which a rank waits for other ranks. An empty function stands for all of the file.
struct WaitingFunction {
  // kInnermost: may compute, and counts where it has called nothing in Python.
  enum Kind { kWaits, kOnce, kMayCompute, kInnermost };
  std::string_view file, function;
  Kind kind = kWaits;
};

constexpr auto kWaitingFunctions = std::to_array<WaitingFunction>({
    {"/torch/distributed/distributed_c10d.py", "init_process_group", WaitingFunction::kOnce},
    {"/torch/distributed/distributed_c10d.py", "_store_based_barrier", WaitingFunction::kOnce},
    {"/torch/distributed/distributed_c10d.py", ""},
    {"/torch/distributed/rendezvous.py", "", WaitingFunction::kOnce},
    {"/torch/distributed/_functional_collectives.py", ""},
    {"/torch/distributed/nn/functional.py", ""},
    {"/torch/distributed/utils.py", "_sync_module_states"},
    {"/torch/distributed/utils.py", "_sync_params_and_buffers"},
    {"/torch/distributed/utils.py", "_verify_param_shape_across_processes"},
    {"/torch/distributed/algorithms/join.py", "__exit__"},
    {"/torch/distributed/algorithms/join.py", "notify_join_context"},
    {"/torch/nn/parallel/distributed.py", "_sync_buffers"},
    {"/torch/nn/parallel/distributed.py", "_sync_module_states"},
    {"/torch/nn/parallel/distributed.py", "_sync_params_and_buffers"},
    {"/torch/nn/parallel/distributed.py", "_default_broadcast_coalesced"},
    {"/torch/nn/parallel/distributed.py", "_distributed_broadcast_coalesced"},
    {"/torch/nn/parallel/distributed.py", "_check_global_requires_backward_grad_sync"},
    {"/torch/nn/parallel/distributed.py", "_sync_final_model"},
    // The ranks agree on the buckets of the gradients, from C++.
    {"/torch/nn/parallel/distributed.py", "forward", WaitingFunction::kInnermost},
    {"/torch/nn/parallel/distributed.py", "_pre_forward", WaitingFunction::kInnermost},
    {"/torch/nn/parallel/distributed.py", "__init__", WaitingFunction::kInnermost},
    {"/torch/nn/modules/_functions.py", "forward", WaitingFunction::kMayCompute},  // SyncBatchNorm
    // DistributedDataParallel exchanges gradients in there, from C++.
    {"/torch/_tensor.py", "backward", WaitingFunction::kMayCompute},
    {"/torch/autograd/__init__.py", "backward", WaitingFunction::kMayCompute},
    {"/torch/autograd/graph.py", "_engine_run_backward", WaitingFunction::kMayCompute},
    // With NCCL the program waits for the GPU, which waits for the collective.
    {"/torch/cuda/__init__.py", "synchronize", WaitingFunction::kMayCompute},
    {"/torch/cuda/streams.py", "synchronize", WaitingFunction::kMayCompute},
    {"/torch/cuda/streams.py", "wait", WaitingFunction::kMayCompute},
});

std::string_view LastPart(std::string_view function) {
  return function.substr(function.rfind('.') + 1);  // py-spy may say "Tensor.backward"
}

const WaitingFunction* FindWaiting(const PythonFrame& frame) {
  const auto* found = std::ranges::find_if(kWaitingFunctions, [&](const WaitingFunction& entry) {
    return frame.file.ends_with(entry.file) &&
           (entry.function.empty() || entry.function == LastPart(frame.function));
  });
  return found == kWaitingFunctions.end() ? nullptr : found;
}

// "torch/serialization.py"
std::string_view FileInLibrary(std::string_view file) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = file.rfind(folder);
    if (at != std::string_view::npos) return file.substr(at + folder.size());
  }
  return file.substr(file.rfind('/') + 1);
}

}  // namespace

ForeignCall ForeignCallIn(const std::vector<PythonFrame>& frames) {
  ForeignCall found;
  for (const PythonFrame& frame : frames) {
    if (!IsLibraryFile(frame.file)) {
      found.site = FrameSite(frame);
      break;
    }
    found.is_ours = found.is_ours || frame.file.find("/horovod/") != std::string_view::npos;
    found.inside = Format("{} ({})", frame.function, FileInLibrary(frame.file));
    // The outermost one is what the script has called; one that surely waits is worth more.
    const WaitingFunction* waiting = FindWaiting(frame);
    if (waiting == nullptr) continue;
    const bool innermost = waiting->kind == WaitingFunction::kInnermost;
    if (innermost && &frame != frames.data()) continue;
    const bool may_compute = innermost || waiting->kind == WaitingFunction::kMayCompute;
    if (may_compute && !found.call.empty() && !found.may_compute) continue;
    found.call = LastPart(frame.function);
    found.may_compute = may_compute;
    found.once = waiting->kind == WaitingFunction::kOnce;
  }
  if (found.site.empty() && !frames.empty()) found.site = FrameSite(frames.front());
  return found;
}

}  // namespace hvd
