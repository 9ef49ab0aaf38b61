// LeaderSum: the leader's work before and after the exchange of one sum between hosts, of one
// tensor or several fused ones. Used by one thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_LEADER_SUM_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_LEADER_SUM_H_

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "runtime/backends/hosts/batch_items.h"
#include "runtime/backends/hosts/members/leader_op.h"
#include "runtime/backends/sum_copies.h"
#include "runtime/base/message_bytes.h"
#include "runtime/base/status.h"
#include "runtime/device/host_reduce.h"

namespace hvd {

// The divisor of an average.
uint32_t DivisorFor(const CollectiveCall& call, const LeaderItem& item);

// This host's part of a sum, to be sent with its ready report, so that the leaders have nothing to
// exchange. Empty for other operations, or if it is too large.
MessageBytes SumToOffer(const LeaderOp& op);

class LeaderSum final : private SumCopies {
 public:
  // Returns memory for this many bytes, valid until the next call or the end of the sum.
  using Room = std::function<std::byte*(size_t bytes)>;

  // The items outlive it and can be fused.
  explicit LeaderSum(LeaderItems items);

  const ReduceSpec& spec() const { return spec_; }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * SizeOf(spec_.dtype); }

  // Does the chunks that members of this host have not claimed. False while a member is in the
  // middle of a chunk.
  bool Help();
  // Every host has its part now; puts this host's where the exchange expects it. `by_part`: the
  // exchange can copy large tensors part by part; it gets the returned object, null if there is
  // nothing to copy.
  SumCopies* Pack(const Room& room, bool by_part);
  // Instead of an exchange, after Pack: adds the other leaders' offers. `own`: this one's place
  // among them.
  Status AddOffered(std::span<const MessageBytes> sums, size_t own);
  const void* input() const { return input_; }
  void* output() const { return output_; }
  // The exchange is over.
  void HandOut();

 private:
  // SumCopies
  void Fill(size_t first, size_t count) override;
  void Deliver(size_t first, size_t count) override;

  template <typename Visitor>
  void ForTensors(size_t first, size_t count, Visitor visit) const;

  const LeaderItems items_;
  ReduceSpec spec_;
  size_t count_ = 0;
  std::byte* packed_ = nullptr;  // of several tensors, one behind the other
  bool by_part_ = false;         // the exchange copies them
  std::vector<size_t> begins_;   // element of each of those
  const void* input_ = nullptr;
  void* output_ = nullptr;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_LEADER_SUM_H_
