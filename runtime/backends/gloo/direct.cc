#include "runtime/backends/gloo/direct.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/backends/gloo/transfers.h"

namespace hvd {
namespace {

// A small sum does not need a second stripe.
InterHostCall OverOneStripe(InterHostCall call) {
  call.cut.stripes = 1;
  return call;
}

// Every leader receives everything and adds it up.
class DirectSum final : public InterHostSum {
 public:
  DirectSum(Mesh& mesh, ScratchPool& pool, const InterHostCall& call, const ReduceSpec& spec,
            const void* input, void* output, size_t count)
      : call_(OverOneStripe(call)),
        spec_(spec),
        input_(static_cast<const std::byte*>(input)),
        output_(output),
        count_(count),
        bytes_(count * SizeOf(spec.dtype)),
        scratch_(pool.Acquire((LeadersOf(call) - 1) * bytes_)),
        transfers_(mesh, call_) {
    call_.ReportAlgorithm(TraceAlgorithm::kDirect);
    if (call_.copies != nullptr) call_.copies->Fill(0, count_);
    MeshStart start(mesh, /*eager=*/bytes_ <= size_t{call_.cut.eager_kib} << 10);
    ForOthers(call_, [&](uint32_t leader) {
      transfers_.Send(start, leader, kScatterSlot, input_, bytes_);
    });
    ForOthers(call_, [&](uint32_t leader) {
      transfers_.Receive(start, leader, kScatterSlot,
                         scratch_.get() + ScratchPlace(call_, leader, bytes_), bytes_);
    });
  }

  Status Continue(TimePoint deadline) override {
    HVD_RETURN_IF_ERROR(transfers_.WaitUntil(deadline));
    return Finish();
  }
  // Waits as long as bytes keep arriving.
  Status Run() {
    HVD_RETURN_IF_ERROR(transfers_.WaitAll());
    return Finish();
  }

 private:
  Status Finish() {
    AddUp(call_, spec_, input_, scratch_.get(), output_, count_);
    if (call_.copies != nullptr) call_.copies->Deliver(0, count_);
    return Status::Ok();
  }

  const InterHostCall call_;
  const ReduceSpec spec_;
  const std::byte* const input_;
  void* const output_;
  const size_t count_, bytes_;
  ScratchPool::Lease scratch_;
  Transfers transfers_;
};

}  // namespace

Status DirectAllreduce(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                       const ReduceSpec& spec, const void* input, void* output, size_t count) {
  return DirectSum(mesh, pool, call, spec, input, output, count).Run();
}

std::unique_ptr<InterHostSum> BeginDirectAllreduce(Mesh& mesh, ScratchPool& pool,
                                                   const InterHostCall& call,
                                                   const ReduceSpec& spec, const void* input,
                                                   void* output, size_t count) {
  return std::make_unique<DirectSum>(mesh, pool, call, spec, input, output, count);
}

Status DirectReducescatterv(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                            const ReduceSpec& spec, const void* input,
                            std::span<const size_t> counts, void* output) {
  size_t element = SizeOf(spec.dtype);
  std::vector<const std::byte*> parts(counts.size());
  const std::byte* next = static_cast<const std::byte*>(input);
  for (size_t i = 0; i < counts.size(); ++i) {
    parts[i] = next;
    next += counts[i] * element;
  }
  size_t own_count = counts[call.group.index];
  size_t own_bytes = own_count * element;
  ScratchPool::Lease scratch = pool.Acquire((counts.size() - 1) * own_bytes);
  Transfers transfers(mesh, call);
  {
    MeshStart start(mesh);
    ForOthers(call, [&](uint32_t leader) {
      transfers.Receive(start, leader, kScatterSlot,
                        scratch.get() + ScratchPlace(call, leader, own_bytes), own_bytes);
    });
    ForOthers(call, [&](uint32_t leader) {
      transfers.Send(start, leader, kScatterSlot, parts[leader], counts[leader] * element);
    });
  }
  HVD_RETURN_IF_ERROR(transfers.WaitAll());
  AddUp(call, spec, parts[call.group.index], scratch.get(), output, own_count);
  return Status::Ok();
}

}  // namespace hvd
