#include "launcher/driver/worker_stdin.h"

#include <unistd.h>

#include <asio/post.hpp>
#include <utility>
#include <vector>

namespace hvd {

void WorkerStdin::Start(const Plan& plan, const JobHosts& hosts) {
  const StdinTo to = options_.settings.stdin_to;
  const std::vector<uint32_t> readers = HostsThatReadStdin(plan, to);
  if (readers.empty()) return;
  // A rank 0 of this machine has the descriptor itself.
  if (to == StdinTo::kRank0 && !hosts[readers[0]].remote && PassesStdin(to)) return;
  broadcast_.emplace(readers);
  reader_ = std::make_unique<StdinReader>(
      STDIN_FILENO, StdinBroadcast::kWindow, [this](std::string bytes) {
        asio::post(io_, [this, bytes = std::move(bytes)]() mutable { Send(std::move(bytes)); });
      });
}

void WorkerStdin::Send(std::string bytes) {
  if (options_.stdin_terminal) screen_.Typed(bytes);
  broadcast_->NoteSent(bytes.size());
  const WorkerInput input{std::move(bytes)};
  for (uint32_t host : broadcast_->readers()) agents_.Send(host, input);
}

Status WorkerStdin::Handle(uint32_t host, const InputTaken& taken, TimePoint) {
  if (!broadcast_) return Status::Ok();
  Result<uint64_t> more = broadcast_->NoteRead(host, taken.bytes);
  if (!more.ok()) return more.status();
  if (*more > 0) reader_->Allow(*more);
  return Status::Ok();
}

}  // namespace hvd
