// RemoteOutput: the output of a job on another host, through a program that connects to it. How
// much was shown is recorded on that host and on this machine.
#ifndef HVD_LAUNCHER_DETACHED_REMOTE_OUTPUT_H_
#define HVD_LAUNCHER_DETACHED_REMOTE_OUTPUT_H_

#include <optional>
#include <string>

#include "launcher/channels/preamble.h"
#include "launcher/detached/output_source.h"
#include "launcher/detached/shown.h"
#include "launcher/detached/viewer_protocol.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class RemoteOutput final : public OutputSource {
 public:
  // `from` and `to`: stdout and stdin of the program.
  RemoteOutput(UniqueFd from, UniqueFd to);

  // Waits a moment for the host's JobThere.
  enum class Opening { kWaits, kThere, kBroken };
  Opening Open();
  const JobThere& job() const { return job_; }
  // Requests the output from `from` on. After Open.
  void Begin(LogPlace from, std::optional<ShownRecord> own);

  Event Next(OutputPiece* piece) override;
  void Shown(LogPlace place) override;
  void StopJob() override;
  const std::string& job_name() const override { return job_.name; }
  const DetachedEnd& end() const override { return end_; }

  // Sends the final ShownUpTo and closes the stream. Waits a moment; true: the other side has
  // ended.
  bool Leave();

  // A sentence about a protocol violation by the other side; empty: none.
  const std::string& trouble() const { return trouble_; }
  // Call when the host has recorded what was shown.
  void ForgetOwnRecord() {
    if (own_) own_->Remove();
  }

 private:
  // The next message; waits a moment if there is none.
  std::optional<ToViewer> Receive();
  std::optional<ToViewer> Broken(const std::string& trouble);
  void Send();

  UniqueFd from_, to_;
  Preamble preamble_{kViewerGreeting};
  ViewerReader<ToViewer> reader_;
  ViewerMessages messages_;
  std::string outgoing_, trouble_;
  JobThere job_;
  DetachedEnd end_;
  std::optional<ShownRecord> own_;
  LogPlace received_, shown_, reported_;
  bool ended_ = false, broken_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_REMOTE_OUTPUT_H_
