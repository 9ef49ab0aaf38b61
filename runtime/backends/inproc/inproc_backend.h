// InprocBackend: collectives among threads of one process, as plain as can be, for tests: the model that the others are
// checked against. Every rank computes the whole result for itself, in double or 64-bit integers, one element at a time.
#ifndef HVD_RUNTIME_BACKENDS_INPROC_INPROC_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_INPROC_INPROC_BACKEND_H_

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/backends/backend.h"

namespace hvd {

// Copies of the ranks' inputs, each kept until every rank has taken it. Shared by the backends of one group.
class InprocBoard {
 public:
  using Input = std::shared_ptr<const std::vector<std::byte>>;

  // The number under which `readers` ranks can take the input, once each.
  uint64_t Pin(std::vector<std::byte> input, uint32_t readers);
  Input Take(uint64_t number);

 private:
  struct Entry {
    Input input;
    uint32_t readers = 0;
  };
  std::mutex mutex_;
  uint64_t next_ = 1;
  std::map<uint64_t, Entry> entries_;
};

class InprocBackend final : public Backend {
 public:
  InprocBackend(InprocBoard& board, uint32_t size) : board_(board), size_(size) {}

  std::string_view name() const override { return "inproc"; }
  Status Viable() const override { return Status::Ok(); }
  Abilities abilities() const override { return {.abort = true, .reform = true}; }

  Result<Offer> Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state) override;
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     std::span<const Offer> offers) override;
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override;
  bool Needs(const CollectiveCall&, const OpState*, uint32_t) const override { return false; }
  void Abandon(std::unique_ptr<OpState>, bool) override {}

 private:
  InprocBoard& board_;
  uint32_t size_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_INPROC_INPROC_BACKEND_H_
