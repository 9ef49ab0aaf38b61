#include "runtime/backends/mpi/mpi_exchange.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/text/comma_separated.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// "rank 3", "ranks 1, 4, 7"
std::string RankList(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + CommaSeparated(ranks);
}

}  // namespace

InStream* Exchange::Receive(int peer, size_t bytes) {
  ins_.push_back({InStream(kind_, peer, bytes), nullptr});
  return &ins_.back().stream;
}

void Exchange::Receive(int peer, std::byte* to, size_t bytes) {
  if (bytes != 0) ins_.push_back({InStream(kind_, peer, bytes), to});
}

bool Exchange::ReceiveIntoMemory() {
  bool all = true;
  for (Sink& in : ins_) {
    if (in.to != nullptr) {
      for (; in.stream.ready(); in.stream.Pop()) {
        std::span<const std::byte> chunk = in.stream.front();
        std::memcpy(in.to + in.stream.offset(), chunk.data(), chunk.size());
      }
    }
    all = all && in.stream.done();
  }
  return all;
}

Result<Turn> Exchange::Step() {
  HVD_RETURN_IF_ERROR(look_());
  bool moved = false, all = true;
  for (Sink& in : ins_) {
    Result<Turn> turn = in.stream.Step();
    if (!turn.ok()) return turn;
    moved |= *turn == Turn::kMoved;
  }
  if (on_arrival_) on_arrival_();
  all = ReceiveIntoMemory();
  for (OutStream& out : outs_) {
    Result<Turn> turn = out.Step();
    if (!turn.ok()) return turn;
    moved |= *turn == Turn::kMoved;
    all = all && *turn == Turn::kDone;
  }
  if (all) return Turn::kDone;
  if (moved) return Turn::kMoved;
  for (int rank : Missing()) {
    if (gone_(rank)) {
      return Aborted(Format("rank {} has left the world, and {} needs it", rank, what_));
    }
  }
  return Turn::kIdle;
}

// A chunk that has arrived and is not used waits for another rank's.
std::vector<int> Exchange::Missing() const {
  std::vector<int> ranks;
  for (const Sink& in : ins_) {
    if (!in.stream.done() && !in.stream.ready()) ranks.push_back(in.stream.peer());
  }
  return ranks;
}

std::string Exchange::Waiting() const {
  std::vector<int> missing = Missing(), slow;
  for (const OutStream& out : outs_) {
    if (!out.done()) slow.push_back(out.peer());
  }
  if (!missing.empty()) return what_ + " waits for " + RankList(missing);
  return what_ + " waits until its data are taken by " + RankList(slow);
}

}  // namespace hvd
