#include "runtime/backends/gloo/large_sum.h"

#include <algorithm>
#include <vector>

#include "runtime/backends/gloo/transfers.h"

namespace hvd {
namespace {

// Where the call leaves it open: what one leader adds up of a piece, and what it receives for it,
// stay in the cache of a core between their arrival and the addition.
constexpr size_t kPartBytes = 512 << 10;
constexpr size_t kMostPieceBytes = 4 << 20;
constexpr size_t kPiecesUnderWay = 8;

size_t PieceBytes(const InterHostCall& call) {
  if (call.cut.piece_kib != 0) return size_t{call.cut.piece_kib} << 10;
  return std::min(kMostPieceBytes, kPartBytes * LeadersOf(call));
}

// One allreduce. All receives of a piece are posted with its first sends, so that no other leader
// has to wait for leave.
class LargeSum {
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
        leaders_(LeadersOf(call)),
        piece_(std::min(count, std::max<size_t>(leaders_, PieceBytes(call) / element_))),
        part_((piece_ + leaders_ - 1) / leaders_),
        pieces_((count_ + piece_ - 1) / piece_),
        under_way_(
            std::min<size_t>(pieces_, call.cut.pieces != 0 ? call.cut.pieces : kPiecesUnderWay)),
        scratch_bytes_((leaders_ - 1) * part_ * element_),
        scratch_(pool.Take(under_way_ * scratch_bytes_)),
        sends_(mesh, call) {
    for (size_t turn = 0; turn < under_way_; ++turn) arrivals_.emplace_back(mesh_, call_);
    for (size_t piece = 0; piece < pieces_; ++piece) results_.emplace_back(mesh_, call_);
  }

  Status Run() {
    for (size_t piece = 0; piece < under_way_; ++piece) Begin(piece);
    for (size_t piece = 0; piece < pieces_; ++piece) {
      HVD_RETURN_IF_ERROR(arrivals_[piece % under_way_].WaitAll());
      Add(piece);
      SendResult(piece);
      if (piece + under_way_ < pieces_) Begin(piece + under_way_);
      // Not the newest ones: others are on the link while one is waited for.
      if (piece >= under_way_) HVD_RETURN_IF_ERROR(End(piece - under_way_));
    }
    for (size_t piece = pieces_ - under_way_; piece < pieces_; ++piece) {
      HVD_RETURN_IF_ERROR(End(piece));
    }
    return sends_.WaitAll();
  }

 private:
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

  void Begin(size_t piece) {
    Transfers& arrivals = arrivals_[piece % under_way_];
    const size_t own_bytes = PartOf(piece, call_.group.index).count * element_;
    if (call_.copies != nullptr) call_.copies->Fill(All(piece).first, All(piece).count);
    ForOthers(call_, [&](uint32_t leader) {
      arrivals.Receive(leader, kScatterSlot,
                       ScratchOf(piece) + ScratchPlace(call_, leader, own_bytes), own_bytes);
    });
    // Another leader's result comes to a place whose content that leader has received before, so
    // the place may be in the input.
    ForOthers(call_, [&](uint32_t leader) {
      const Range part = PartOf(piece, leader);
      results_[piece].Receive(leader, kGatherSlot, output_ + part.first * element_,
                              part.count * element_);
    });
    ForOthers(call_, [&](uint32_t leader) {
      const Range part = PartOf(piece, leader);
      sends_.Send(leader, kScatterSlot, input_ + part.first * element_, part.count * element_);
    });
  }
  void Add(size_t piece) {
    const Range own = PartOf(piece, call_.group.index);
    AddUp(call_, spec_, input_ + own.first * element_, ScratchOf(piece),
          output_ + own.first * element_, own.count);
  }
  void SendResult(size_t piece) {
    const Range own = PartOf(piece, call_.group.index);
    ForOthers(call_, [&](uint32_t leader) {
      sends_.Send(leader, kGatherSlot, output_ + own.first * element_, own.count * element_);
    });
  }
  Status End(size_t piece) {
    HVD_RETURN_IF_ERROR(results_[piece].WaitAll());
    if (call_.copies != nullptr) call_.copies->Take(All(piece).first, All(piece).count);
    return Status::Ok();
  }

  Mesh& mesh_;
  const InterHostCall& call_;
  const ReduceSpec spec_;
  const std::byte* const input_;
  std::byte* const output_;
  const size_t count_, element_;
  const uint32_t leaders_;
  const size_t piece_, part_;  // elements
  const size_t pieces_, under_way_;
  const size_t scratch_bytes_;  // of a piece
  ScratchPool::Lease scratch_;
  std::vector<Transfers> arrivals_;  // by turn: what a piece needs before it is added up
  std::vector<Transfers> results_;   // by piece: the parts that others have added up
  Transfers sends_;                  // waited for at the end
};

}  // namespace

Status SlicedAllreduce(Mesh& mesh, ScratchPool& pool, const InterHostCall& call,
                       const ReduceSpec& spec, const void* input, void* output, size_t count) {
  return LargeSum(mesh, pool, call, spec, input, output, count).Run();
}

}  // namespace hvd
