// LeaderSum: one sum between hosts, of one tensor or of several that travel together: the work of
// its leader before and after the exchange. Used by one thread at a time.
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

// What this host gives to a sum, to travel with the report that it is ready: then the leaders have
// nothing to exchange. Empty where the operation is anything else, or too large for that.
MessageBytes SumToOffer(const LeaderOp& op);

class LeaderSum final : private SumCopies {
 public:
  // Makes room for so many bytes, until the next call or the end of the sum.
  using Room = std::function<std::byte*(size_t bytes)>;

  // The items outlive it, and are sums that travel together.
  explicit LeaderSum(LeaderItems items);

  const ReduceSpec& spec() const { return spec_; }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * SizeOf(spec_.dtype); }

  // Does what the members of this host have not taken of their sums. False while a member is in the
  // middle of a chunk.
  bool Help();
  // Every host has its part now; puts that of this one where the exchange finds it. `by_part`: the
  // exchange can copy large tensors part by part; it gets what this returns, null where it has
  // nothing to copy.
  SumCopies* Pack(const Room& room, bool by_part);
  // In place of an exchange, after Pack: adds what the other leaders have offered. `own`: the place
  // of this one among them.
  Status AddOffered(std::span<const MessageBytes> sums, size_t own);
  const void* input() const { return input_; }
  void* output() const { return output_; }
  // The exchange is over.
  void HandOut();

 private:
  // SumCopies
  void Fill(size_t first, size_t count) override;
  void Take(size_t first, size_t count) override;

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
