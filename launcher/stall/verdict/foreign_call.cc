#include "launcher/stall/verdict/foreign_call.h"

#include <algorithm>
#include <array>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Functions in which a rank waits for other ranks. An empty function name means the whole file.
struct WaitingFunction {
  // kInnermost: may compute, and counts if it is the innermost Python frame.
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
    // The ranks agree on the gradient buckets, in C++.
    {"/torch/nn/parallel/distributed.py", "forward", WaitingFunction::kInnermost},
    {"/torch/nn/parallel/distributed.py", "_pre_forward", WaitingFunction::kInnermost},
    {"/torch/nn/parallel/distributed.py", "__init__", WaitingFunction::kInnermost},
    {"/torch/nn/modules/_functions.py", "forward", WaitingFunction::kMayCompute},  // SyncBatchNorm
    // DistributedDataParallel exchanges gradients in it, in C++.
    {"/torch/_tensor.py", "backward", WaitingFunction::kMayCompute},
    {"/torch/autograd/__init__.py", "backward", WaitingFunction::kMayCompute},
    {"/torch/autograd/graph.py", "_engine_run_backward", WaitingFunction::kMayCompute},
    // With NCCL the program waits for the GPU, which waits for the collective.
    {"/torch/cuda/__init__.py", "synchronize", WaitingFunction::kMayCompute},
    {"/torch/cuda/streams.py", "synchronize", WaitingFunction::kMayCompute},
    {"/torch/cuda/streams.py", "wait", WaitingFunction::kMayCompute},
});

// Functions of mpi4py that wait for other ranks, as methods: `comm.Bcast(...)`.
constexpr auto kMpiFunctions = std::to_array<std::string_view>({
    "Allgather", "Allgatherv", "Allreduce", "Alltoall",       "Alltoallv", "Alltoallw",
    "Barrier",   "Bcast",      "Exscan",    "Gather",         "Gatherv",   "Mprobe",
    "Probe",     "Recv",       "Reduce",    "Reduce_scatter", "Rsend",     "Reduce_scatter_block",
    "Scan",      "Scatter",    "Scatterv",  "Send",           "Sendrecv",  "Sendrecv_replace",
    "Ssend",     "Wait",       "Waitall",   "Waitany",        "Waitsome",
});
// The same for Python objects: other libraries have functions of these names, too.
constexpr auto kMpiObjectFunctions = std::to_array<std::string_view>(
    {"allgather", "allreduce", "alltoall", "barrier", "bcast", "exscan", "gather", "mprobe",
     "probe", "recv", "reduce", "scan", "scatter", "send", "sendrecv", "ssend"});
// These return immediately, so a line that also calls them and takes long waits in MPI.
constexpr auto kShortFunctions = std::to_array<std::string_view>(
    {"Get_rank", "Get_size", "bool", "float", "int", "item", "len", "str"});

// "MPI.COMM_WORLD" and "self.comm" are communicators in a script, "request" is not.
bool IsCommunicator(std::string_view object) {
  constexpr std::string_view kName = "comm";
  return std::ranges::search(object, kName, [](char a, char b) {
           return (a | ' ') == b;
         }).begin() != object.end();
}

bool IsIn(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsNameCharacter(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The name that `text` ends with.
std::string_view NameAtEnd(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && IsNameCharacter(text[begin - 1])) --begin;
  return text.substr(begin);
}

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
    // The outermost one is what the script has called; one that certainly waits takes precedence.
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

std::string_view MpiCallIn(std::string_view line) {
  line = line.substr(0, line.find('#'));
  if (line.find_first_of("@\"'") != line.npos) return "";
  std::string_view found;
  for (size_t at = line.find('('); at != line.npos; at = line.find('(', at + 1)) {
    const std::string_view name = NameAtEnd(line.substr(0, at));
    const std::string_view before = line.substr(0, at - name.size());
    if (IsIn(kShortFunctions, name)) continue;
    const bool is_tuple =
        name.empty() &&
        (before.empty() || std::string_view(" (,=[{").find(before.back()) != before.npos);
    if (is_tuple) continue;
    if (!before.ends_with('.')) return "";
    const std::string_view object = NameAtEnd(before.substr(0, before.size() - 1));
    const bool is_mpi =
        IsIn(kMpiFunctions, name) || (IsCommunicator(object) && IsIn(kMpiObjectFunctions, name));
    if (!is_mpi) return "";
    if (found.empty()) found = name;
  }
  return found;
}

}  // namespace hvd
