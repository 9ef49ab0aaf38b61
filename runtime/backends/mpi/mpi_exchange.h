// Exchange: streams to and from several peers, and the work on the chunks that arrive. An Activity.
#ifndef HVD_RUNTIME_BACKENDS_MPI_MPI_EXCHANGE_H_
#define HVD_RUNTIME_BACKENDS_MPI_MPI_EXCHANGE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backends/mpi/mpi_library.h"
#include "runtime/backends/mpi/mpi_streams.h"

namespace hvd {

class Exchange final : public Activity {
 public:
  // `what`: "the allreduce of 1,024 bytes over MPI by 3 hosts". `look` is called in every step and
  // decides whether to continue; `gone`, when nothing moves, tells whether a rank sends nothing
  // more.
  Exchange(const StreamKind& kind, std::string what, std::function<Status()> look,
           std::function<bool(int rank)> gone)
      : kind_(kind), what_(std::move(what)), look_(std::move(look)), gone_(std::move(gone)) {}

  // Empty streams are left out, as both ends know.
  void Send(int peer, const std::byte* data, size_t bytes) {
    if (bytes != 0) outs_.emplace_back(kind_, peer, data, bytes);
  }
  InStream* Receive(int peer, size_t bytes);
  // Receives into memory.
  void Receive(int peer, std::byte* to, size_t bytes);
  // Called after chunks have arrived: takes those it can use.
  void OnArrival(std::function<void()> on_arrival) { on_arrival_ = std::move(on_arrival); }
  std::vector<OutStream>& outs() { return outs_; }

  Result<Turn> Step() override;
  std::string Waiting() const override;

 private:
  struct Sink {
    InStream stream;
    std::byte* to;  // null: OnArrival handles the chunks
  };
  bool ReceiveIntoMemory();
  std::vector<int> Missing() const;

  StreamKind kind_;
  std::string what_;
  std::function<Status()> look_;
  std::function<bool(int)> gone_;
  std::function<void()> on_arrival_;
  std::vector<OutStream> outs_;
  std::deque<Sink> ins_;  // pointers into it stay valid
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_MPI_MPI_EXCHANGE_H_
