#include "runtime/backends/gloo/large_sum.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/backends/gloo/allreduce_algorithm.h"
#include "runtime/backends/gloo/transfers.h"

namespace hvd {
namespace {

// The default piece size: what one leader adds up of a piece, and what it receives for it, stay in
// the cache of a core between arrival and addition.
constexpr size_t kPartBytes = 512 << 10;
constexpr size_t kMostPieceBytes = 4 << 20;
// The part of the only other leader is added as it arrives, through a window small enough for a
// near cache. Whole elements.
constexpr size_t kWindowBytes = 64 << 10;

size_t PieceBytes(const InterHostCall& call) {
  if (call.cut.piece_kib != 0) return size_t{call.cut.piece_kib} << 10;
  return std::min(kMostPieceBytes, kPartBytes * LeadersOf(call));
}

// In us, between this leader and the others; 0 if not all of them are known.
uint64_t LongestRoundTrip(const Mesh& mesh, const InterHostCall& call) {
  const std::vector<MeshLink> links = mesh.Links();
  uint64_t longest = 0;
  for (uint32_t leader = 0; leader < LeadersOf(call); ++leader) {
    if (leader == call.group.index) continue;
    const uint32_t rank = call.group.leaders[leader];
    const auto link = std::ranges::lower_bound(links, rank, {}, &MeshLink::rank);
    if (link == links.end() || link->rank != rank || link->round_trip_us == 0) return 0;
    longest = std::max(longest, link->round_trip_us);
  }
  return longest;
}

size_t PiecesAtOnce(const Mesh& mesh, const InterHostCall& call, size_t part_bytes) {
  if (call.cut.pieces != 0) return call.cut.pieces;
  return PiecesInFlight(LongestRoundTrip(mesh, call), part_bytes);
}

// Adds the part of the only other leader to this one's, as it arrives.
class PartAdder final : public MeshConsumer {
 public:
  // `call`, `spec` and the memory outlive it.
  PartAdder(const InterHostCall& call, const ReduceSpec& spec, std::span<std::byte> window,
            const std::byte* own, std::byte* output)
      : call_(call), spec_(spec), window_(window), own_(own), output_(output) {}

  std::span<std::byte> window() override { return window_; }
  void Consume(size_t count) override {
    AddUp(call_, spec_, own_, window_.data(), output_, count / SizeOf(spec_.dtype));
    own_ += count;
    output_ += count;
  }

 private:
  const InterHostCall& call_;
  const ReduceSpec& spec_;
  const std::span<std::byte> window_;
  const std::byte* own_;
  std::byte* output_;
};

// One allreduce. All receives of a piece are posted with its first sends, so that no leader has to
// wait for permission to send.
class LargeSum final : public InterHostSum {
 public:
  LargeSum(Mesh& mesh, ScratchPool& pool, const InterHostCall& call, const ReduceSpec& spec,
           const void* input, void* output, size_t count)
      : mesh_(mesh),
        call_(call),
        spec_(spec),
        input_(static_cast<const std::byte*>(input)),
        output_(static_cast<std::byte*>(output)),
        count_(count),
        element_(SizeOf(spec.dtype)),
        leaders_(LeadersOf(call_)),
        piece_(std::min(count, std::max<size_t>(leaders_, PieceBytes(call_) / element_))),
        part_((piece_ + leaders_ - 1) / leaders_),
        pieces_((count_ + piece_ - 1) / piece_),
        under_way_(std::min(pieces_, PiecesAtOnce(mesh, call_, part_ * element_))),
        scratch_bytes_((leaders_ - 1) * part_ * element_),
        scratch_(pool.Acquire(adds_at_once() ? MostStripes(call_) * kWindowBytes
                                             : under_way_ * scratch_bytes_)),
        adders_(under_way_),
        sends_(mesh, call_) {
    call_.ReportAlgorithm(TraceAlgorithm::kSliced);
    for (size_t turn = 0; turn < under_way_; ++turn) arrivals_.emplace_back(mesh_, call_);
    for (size_t piece = 0; piece < pieces_; ++piece) results_.emplace_back(mesh_, call_);
    for (size_t piece = 0; piece < under_way_; ++piece) Begin(piece);
  }

  Status Continue(TimePoint deadline) override {
    return GoOn(
        [deadline](Transfers& all, MeshAfter after) { return all.WaitUntil(deadline, after); });
  }
  // Waits as long as bytes keep arriving.
  Status Run() {
    return GoOn([](Transfers& all, MeshAfter after) { return all.WaitAll(after); });
  }

 private:
  template <typename Wait>
  Status GoOn(Wait wait) {
    while (ended_ < pieces_) {
      // Does not wait for the newest results, which use the link meanwhile.
      if (added_ < pieces_ && added_ <= ended_ + under_way_) {
        HVD_RETURN_IF_ERROR(wait(arrivals_[added_ % under_way_], MeshAfter::kReturns));
        Add(added_);
        SendResult(added_);
        if (added_ + under_way_ < pieces_) Begin(added_ + under_way_);
        ++added_;
      } else {
        HVD_RETURN_IF_ERROR(wait(results_[ended_], MeshAfter::kReturns));
        End(ended_++);
      }
    }
    return wait(sends_, MeshAfter::kGoes);
  }

  struct Range {
    size_t first, count;
  };
  Range All(size_t piece) const {
    return {piece * piece_, std::min(count_, (piece + 1) * piece_) - piece * piece_};
  }
  // The elements that a leader adds up.
  Range PartOf(size_t piece, uint32_t leader) const {
    const Range all = All(piece);
    const size_t end = all.first + all.count;
    const size_t first = std::min(end, all.first + leader * part_);
    return {first, std::min(part_, end - first)};
  }
  std::byte* ScratchOf(size_t piece) {
    return scratch_.get() + (piece % under_way_) * scratch_bytes_;
  }

  // Otherwise the parts of all leaders must have arrived, to be added in order.
  bool adds_at_once() const { return leaders_ == 2; }

  // The own part must be complete before another leader's arrives, which may be added to it at
  // once.
  void Begin(size_t piece) {
    if (call_.copies != nullptr) call_.copies->Fill(All(piece).first, All(piece).count);
    MeshStart start(mesh_);
    Expect(start, piece);
    SendParts(start, piece);
  }
  void Expect(MeshStart& start, size_t piece) {
    ForOthers(call_, [&](uint32_t leader) { ExpectPart(start, piece, leader); });
    // Another leader's result goes to a place whose input that leader has already received, so the
    // place may be in the input.
    ForOthers(call_, [&](uint32_t leader) {
      const Range part = PartOf(piece, leader);
      results_[piece].Receive(start, leader, kGatherSlot, output_ + part.first * element_,
                              part.count * element_);
    });
  }
  void ExpectPart(MeshStart& start, size_t piece, uint32_t leader) {
    const size_t turn = piece % under_way_;
    const Range own = PartOf(piece, call_.group.index);
    const size_t bytes = own.count * element_;
    if (!adds_at_once()) {
      return arrivals_[turn].Receive(start, leader, kScatterSlot,
                                     ScratchOf(piece) + ScratchPlace(call_, leader, bytes), bytes);
    }
    std::deque<PartAdder>& adders = adders_[turn];
    adders.clear();
    arrivals_[turn].Receive(
        start, leader, kScatterSlot, bytes, [&](uint32_t stripe, size_t first) -> MeshConsumer& {
          const std::span<std::byte> window{scratch_.get() + stripe * kWindowBytes, kWindowBytes};
          const size_t place = own.first * element_ + first;
          return adders.emplace_back(call_, spec_, window, input_ + place, output_ + place);
        });
  }
  void SendParts(MeshStart& start, size_t piece) {
    ForOthers(call_, [&](uint32_t leader) {
      const Range part = PartOf(piece, leader);
      sends_.Send(start, leader, kScatterSlot, input_ + part.first * element_,
                  part.count * element_);
    });
  }
  void Add(size_t piece) {
    if (adds_at_once()) return;
    const Range own = PartOf(piece, call_.group.index);
    AddUp(call_, spec_, input_ + own.first * element_, ScratchOf(piece),
          output_ + own.first * element_, own.count);
  }
  void SendResult(size_t piece) {
    const Range own = PartOf(piece, call_.group.index);
    MeshStart start(mesh_);
    ForOthers(call_, [&](uint32_t leader) {
      sends_.Send(start, leader, kGatherSlot, output_ + own.first * element_, own.count * element_);
    });
  }
  void End(size_t piece) {
    if (call_.copies != nullptr) call_.copies->Deliver(All(piece).first, All(piece).count);
  }

  Mesh& mesh_;
  const InterHostCall call_;
  const ReduceSpec spec_;
  const std::byte* const input_;
  std::byte* const output_;
  const size_t count_, element_;
  const uint32_t leaders_;
  const size_t piece_, part_;  // elements
  const size_t pieces_, under_way_;
  const size_t scratch_bytes_;  // of a piece
  ScratchPool::Lease scratch_;
  std::vector<std::deque<PartAdder>> adders_;  // by turn, where parts are added at once
  std::vector<Transfers> arrivals_;            // by turn: what a piece needs before it is added up
  std::vector<Transfers> results_;             // by piece: the parts that others have added up
  Transfers sends_;                            // waited for at the end
  size_t added_ = 0, ended_ = 0;               // pieces: own part added up; complete
};

}  // namespace

Status SlicedAllreduce(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                       const ReduceSpec& spec, const void* input, void* output, size_t count) {
  return LargeSum(mesh, pool, call, spec, input, output, count).Run();
}

std::unique_ptr<InterHostSum> BeginSlicedAllreduce(Mesh& mesh, ScratchPool& pool,
                                                   const InterHostCall& call,
                                                   const ReduceSpec& spec, const void* input,
                                                   void* output, size_t count) {
  return std::make_unique<LargeSum>(mesh, pool, call, spec, input, output, count);
}

}  // namespace hvd
