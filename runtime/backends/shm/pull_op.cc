// Allgather, alltoall, broadcast and reducescatter: each member lends its input, and takes what it needs out of the others'.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/backends/shm/pull.h"
#include "runtime/backends/shm/shm_op.h"

namespace hvd {
namespace {

// From this size on, registered input is read where it is, and its owner waits for the readers. Below, a copy is cheaper
// than waiting. The root of a broadcast has nothing else to do, so it always waits.
constexpr size_t kReadInPlaceFrom = 256 << 10;

class PullOp final : public ShmOp {
 public:
  explicit PullOp(ShmRoom room) : room_(room) {}

  Result<Offer> Prepare(const CollectiveCall& call) override;
  Result<bool> Start(const CollectiveCall& call, const Contributions& parts) override;
  Result<bool> Advance(const CollectiveCall& call) override;
  bool Needs(uint32_t member) const override {
    return WaitsForReaders() && member != self_ && !loan_.LeftBy(member);
  }
  bool AwaitsPartOf(uint32_t member) const override { return Needs(member); }
  void TakeBack() override { room_.lending.TakeBack(&loan_); }

 private:
  Status Lend(const CollectiveCall& call, Offer* offer);
  Status Attach(const CollectiveCall& call, const Contributions& parts);
  Status AttachLoan(const CollectiveCall& call, uint32_t member, const LoanOffer& offer,
                    size_t bytes);
  Status FindOutput(const CollectiveCall& call);
  void Copy(bool payloads);
  void Reduce(const CollectiveCall& call);
  void Pull(const CollectiveCall& call);
  void Leave();
  bool AnyPayload() const;
  bool WaitsForReaders() const { return loan_.control != nullptr && loan_.staging == nullptr; }

  // Where a member's input is. A payload is gone after Start.
  struct Source {
    const std::byte* data = nullptr;
    bool payload = false;
    LeftMark* mark = nullptr;  // ours in that member's loan, if it lent something
  };

  ShmRoom room_;
  Loan loan_;
  uint32_t self_ = 0;
  PullPlan plan_;
  std::vector<Source> sources_;
  std::byte* output_ = nullptr;
  bool pulled_ = false;
};

Result<Offer> PullOp::Prepare(const CollectiveCall& call) {
  const Group& group = *call.group;
  self_ = group.local_index;
  Offer offer;
  const bool sends = call.collective != Collective::kBroadcast || call.root == self_;
  if (!sends || group.local_size() == 1 || call.bytes() == 0) return offer;
  if (FitsRequest(call.bytes(), group.local_size())) {
    offer.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
    return offer;
  }
  if (!Lend(call, &offer).ok()) {
    TakeBack();
    offer = {};
    offer.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
    WarnWithoutSharedMemory(call.bytes());
  }
  return offer;
}

Status PullOp::Lend(const CollectiveCall& call, Offer* offer) {
  const uint32_t members = call.group->local_size();
  Result<Loan> loan = room_.lending.Open(members, MarkBytes(members));
  if (!loan.ok()) return loan.status();
  loan_ = *loan;
  const bool in_place = call.collective == Collective::kBroadcast ||
                        (call.bytes() >= kReadInPlaceFrom && !OutputOverlapsInput(call, 1));
  std::optional<Location> data;
  if (in_place) data = room_.lending.heap().Locate(call.input, call.bytes());
  const bool staged = !data;
  if (staged) {
    Result<Location> copy = room_.lending.Stage(&loan_, call.input, call.bytes());
    if (!copy.ok()) return copy.status();
    data = *copy;
  }
  LoanOffer{*data, loan_.control_at, staged}.WriteTo(offer);
  return Status::Ok();
}

Result<bool> PullOp::Start(const CollectiveCall& call, const Contributions& parts) {
  plan_ = PlanPull(call, parts.extents);
  Status attached = Attach(call, parts);
  if (attached.ok()) attached = FindOutput(call);
  if (!attached.ok()) {
    Leave();  // the others go on without us
    return attached;
  }
  if (call.collective != Collective::kReducescatter)
    Copy(/*payloads=*/true);
  else if (AnyPayload())
    Pull(call);
  const bool lent = loan_.control != nullptr;
  const bool others_lent = std::any_of(sources_.begin(), sources_.end(),
                                       [](const Source& source) { return source.mark != nullptr; });
  if (lent || others_lent) return false;
  if (!pulled_) Pull(call);
  return true;
}

Status PullOp::Attach(const CollectiveCall& call, const Contributions& parts) {
  sources_.resize(call.group->local_size());
  sources_[self_].data = loan_.staging != nullptr ? static_cast<const std::byte*>(loan_.staging)
                                                  : static_cast<const std::byte*>(call.input);
  Status first_failure;
  for (uint32_t m = 0; m < sources_.size(); ++m) {
    if (m == self_) continue;
    const Offer& offer = parts.offers[m];
    if (!offer.payload.empty()) {
      sources_[m] = {offer.payload.data(), true, nullptr};
      continue;
    }
    const LoanOffer loan = LoanOffer::In(offer);
    if (loan.control.segment == 0) continue;  // it gives nothing
    const size_t bytes =
        call.collective == Collective::kAllgather || call.collective == Collective::kAlltoall
            ? static_cast<size_t>(parts.extents[m].rows) * call.row_bytes()
            : call.bytes();
    Status attached = AttachLoan(call, m, loan, bytes);
    if (first_failure.ok()) first_failure = attached;
  }
  return first_failure;
}

Status PullOp::AttachLoan(const CollectiveCall& call, uint32_t member, const LoanOffer& offer,
                          size_t bytes) {
  Result<std::byte*> control =
      room_.peer_memory.Resolve(offer.control, MarkBytes(call.group->local_size()));
  if (!control.ok()) return control.status();
  sources_[member].mark = reinterpret_cast<LeftMark*>(*control) + self_;
  Result<std::byte*> data = room_.peer_memory.Resolve(offer.data, bytes);
  if (!data.ok()) return data.status();
  sources_[member].data = *data;
  return Status::Ok();
}

Status PullOp::FindOutput(const CollectiveCall& call) {
  if (call.result != nullptr) {
    call.result->rows = plan_.rows;
    call.result->received_splits = std::move(plan_.received_splits);
  }
  output_ = static_cast<std::byte*>(call.output);
  if (output_ != nullptr || plan_.bytes == 0 || call.result == nullptr) return Status::Ok();
  Status why;
  call.result->made_output = room_.lending.heap().AllocateAnywhere(plan_.bytes, &why);
  output_ = static_cast<std::byte*>(call.result->made_output);
  return output_ != nullptr ? Status::Ok() : why;
}

// The own piece goes first, and from then on the input may be overwritten: the others have theirs in a payload or a copy.
void PullOp::Copy(bool payloads) {
  auto copy = [this](const Piece& piece) {
    const std::byte* from = sources_[piece.from].data + piece.source;
    if (piece.bytes != 0 && from != output_ + piece.target) {
      std::memmove(output_ + piece.target, from, piece.bytes);
    }
  };
  for (const Piece& piece : plan_.pieces) {
    if (piece.from == self_ && payloads) copy(piece);
  }
  for (const Piece& piece : plan_.pieces) {
    if (piece.from != self_ && sources_[piece.from].payload == payloads) copy(piece);
  }
}

void PullOp::Reduce(const CollectiveCall& call) {
  if (plan_.reduced.count == 0) return;
  const size_t skipped = plan_.reduced.first * SizeOf(call.dtype);
  std::vector<std::byte> own;
  std::vector<const void*> inputs;
  for (const Source& source : sources_) inputs.push_back(source.data + skipped);
  if (skipped != 0 && loan_.staging == nullptr && OutputOverlapsInput(call, plan_.bytes)) {
    const auto* rows = static_cast<const std::byte*>(call.input) + skipped;
    own.assign(rows, rows + plan_.bytes);
    inputs[self_] = own.data();
  }
  void* output = output_;
  const auto members = static_cast<uint32_t>(inputs.size());
  ReduceRange(SpecOf(call, DivisorOf(call.op, members, members)), inputs, {&output, 1}, 0,
              plan_.reduced.count);
}

Result<bool> PullOp::Advance(const CollectiveCall& call) {
  if (!pulled_) Pull(call);
  if (WaitsForReaders() && !loan_.LeftByAllBut(self_)) return false;
  room_.lending.TakeBackWhenLeft(&loan_, self_);
  return true;
}

void PullOp::Pull(const CollectiveCall& call) {
  if (call.collective == Collective::kReducescatter)
    Reduce(call);
  else
    Copy(/*payloads=*/false);
  Leave();
  pulled_ = true;
}

bool PullOp::AnyPayload() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const Source& source) { return source.payload; });
}

void PullOp::Leave() {
  for (Source& source : sources_) {
    if (source.mark != nullptr) source.mark->store(1, std::memory_order_release);
  }
}

}  // namespace

std::unique_ptr<ShmOp> MakePullOp(ShmRoom room) { return std::make_unique<PullOp>(room); }

}  // namespace hvd
