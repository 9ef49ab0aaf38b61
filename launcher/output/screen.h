// Screen: everything that hvdrun prints before its last block: the workers' output, on stdout and
// stderr (by screen_text.h) and, when asked for, as it is in files; sentences of hvdrun itself; and
// while the job starts a line that says how far it is. Tells how much of the agents' logs has left.
//
// All calls come from the thread of `io`. Owns a writer for each stream and the files; their
// threads post to `io` and touch nothing else here, so a blocked terminal or disk stops the caller
// in Finish alone, and for a moment in EndProgress. A stream that cannot be written any more is
// said once on stderr, and the job goes on without it.
#ifndef HVD_LAUNCHER_OUTPUT_SCREEN_H_
#define HVD_LAUNCHER_OUTPUT_SCREEN_H_

#include <array>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/settings.h"
#include "launcher/output/lines.h"
#include "launcher/output/output.h"
#include "launcher/output/output_files.h"
#include "launcher/output/progress.h"
#include "launcher/output/screen_text.h"
#include "launcher/output/text/prefix.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"

namespace hvd {

class Screen {
 public:
  // So many more log bytes of a host have left, by the slower of screen and files.
  using OnLeft = std::function<void(uint32_t host, uint64_t log_bytes)>;

  // `plan`: of a job of fixed size; `ranks`: so many there may be.
  // `printed`: for an hvdrun that takes over, or of one that has; both streams lead to one place.
  Screen(asio::io_context& io, const Plan& plan, uint32_t ranks, const Settings& settings,
         const PrefixTemplate& prefix, OnLeft on_left,
         std::shared_ptr<PrintedOutput> printed = nullptr);

  // A worker's output under its rank, shown by the next Flush. `message_bytes` is what it took of
  // the stream's credit. All output between two calls of Flush is of one host.
  void Print(uint32_t host, uint32_t worker, const WorkerOutputView& output, size_t message_bytes);
  void Flush();
  // Somebody typed this into the terminal.
  void Typed(std::string_view bytes);
  // A person sees stderr.
  bool on_terminal() const;
  // They see the end of a rank's stderr there, which is this text, or it is about to be shown.
  bool Shows(std::string_view last_stderr) const { return shown_.EndWith(last_stderr); }
  // The plan became final. Before anything of a rank is printed.
  void UsePlan(const Plan& plan);
  // The rank of an elastic job is on this host from now on.
  void UseRank(uint32_t rank, const std::string& host, uint32_t local_rank);
  // Up to there the output of each worker is on the screen and in its file.
  TakeOver printed(uint32_t workers) const;
  // Those of the workers whose place has changed since the last call.
  std::vector<OutputPrinted> PopPrinted();
  // Some of what has come is not printed.
  bool HoldsBack() const;
  // A sentence of hvdrun itself, at once.
  void Print(const std::string& sentence);

  // How far the hosts are, in words.
  using HostCounts = std::function<std::string()>;

  // The line about the start, if stderr is a terminal. It is gone with the next thing that is
  // shown. `hosts` is asked until HostsReady(); empty: there is nothing to wait for.
  void BeginProgress(HostCounts hosts);
  void HostsChanged();
  void HostsReady();
  void WorkerStarted();
  void RankJoined(uint32_t rank);
  void EndProgress();

  // Hosts were cut off before all that their workers printed had come.
  void NoteUnsent() { unsent_ = true; }
  // Shows what is held back and `last`, and waits until everything is written, but for each stream
  // no longer than `limit`: then says what is lost, where that can be said. Nothing but exit_code()
  // may be called after it.
  void Finish(const std::string& last, std::chrono::milliseconds limit);

  // The exit code of hvdrun when the job succeeded: 0 only if all that the workers printed could be
  // written. 141, as of a program that dies of SIGPIPE, when the reader has left; else 1.
  int exit_code() const;

 private:
  // Stdout or stderr of hvdrun.
  struct Outlet {
    const char* name;
    ScreenText text;
    OutputWriter writer;
    OutputReceipt receipt = {};  // for what the writer has not got yet
    bool failure_said = false;
  };
  enum class Sink { kScreen, kFiles };
  struct Written {
    uint64_t bytes[2] = {0, 0};  // by sink
    uint64_t returned = 0;       // told to on_left_
  };

  std::function<void(std::vector<OutputReceipt>)> ReceiptsOf(Sink sink);
  void OnWritten(Sink sink, const std::vector<OutputReceipt>& receipts);
  void ScheduleHeld();
  void ScheduleProgress();
  void ReportFileFailure();
  void ReportScreenFailure(bool at_end);
  void ReportLost();
  Outlet& out() { return outlets_[0]; }
  Outlet& err() { return outlets_[1]; }
  // One for both where they lead to one place, so that output keeps its order.
  OutputWriter& writer_of(const Outlet& outlet);
  ScreenLine& line_of(const Outlet& outlet);

  // How far a stream of a worker is.
  struct Place {
    uint64_t come = 0;                    // from its agent
    uint64_t on_screen = 0, in_file = 0;  // by a former hvdrun
    uint64_t told = 0;                    // by PopPrinted
  };
  Place& place_of(uint32_t worker, OutputStream stream);
  uint64_t PrintedOf(uint32_t worker, OutputStream stream) const;
  uint32_t& worker_of(uint32_t rank);
  void UseWorker(uint32_t rank, uint32_t worker);

  asio::io_context& io_;
  OnLeft on_left_;
  const std::shared_ptr<PrintedOutput> printed_;  // perhaps null
  std::vector<Place> come_;                       // by worker and stream
  std::vector<uint32_t> worker_of_;               // by rank: whose text came last
  uint32_t ranks_;
  std::vector<PrefixPlace> places_;  // by rank
  std::vector<Written> written_;     // by host
  asio::steady_timer held_timer_, progress_timer_;
  std::optional<Progress> progress_;  // while the job starts
  HostCounts hosts_;
  bool unsent_ = false;
  bool one_place_;
  bool on_terminal_;
  bool colours_;       // hvdrun's last block
  ShownErrors shown_;  // on a terminal
  std::array<ScreenLine, 2> lines_;
  // Last: their threads post to io_.
  std::array<Outlet, 2> outlets_;
  std::unique_ptr<OutputFiles> files_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_SCREEN_H_
