// RemoteOutput: the output of a job of another host, by way of a program that connects to it. The
// host is told up to where it was shown, and this machine remembers it, too.
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

  // Waits a moment for the host to say which job it is.
  enum class Opening { kWaits, kThere, kBroken };
  Opening Open();
  const JobThere& job() const { return job_; }
  // The output is to come from here on. After Open.
  void Begin(LogPlace from, std::optional<ShownRecord> own);

  News Next(OutputPiece* piece) override;
  void Shown(LogPlace place) override;
  void StopJob() override;
  const std::string& job_name() const override { return job_.name; }
  const DetachedEnd& end() const override { return end_; }

  // Nothing more is shown: sends the last word, then leaves the other side to end. Waits a moment;
  // true: it has ended.
  bool Leave();

  // The other side sent something else than hvdrun would: a sentence. Empty: it did not.
  const std::string& trouble() const { return trouble_; }
  // The host knows what was shown.
  void ForgetOwnRecord() {
    if (own_) own_->Remove();
  }

 private:
  // The next message; waits a moment where there is none.
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
  LogPlace received_, shown_, told_;
  bool ended_ = false, broken_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_REMOTE_OUTPUT_H_
