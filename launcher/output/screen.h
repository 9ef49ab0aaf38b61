// Screen: everything that hvdrun prints before its final report: the workers' output on stdout and
// stderr (screen_text.h) and, if requested, unchanged in files; hvdrun's own messages; and a
// progress line while the job starts. Reports how much of each host's output has been written.
//
// All calls come from the thread of `io`. Owns a writer for each stream and the files; their
// threads post to `io` and touch nothing else here, so a blocked terminal or disk blocks the caller
// in Finish only, and briefly in EndProgress. A failed stream is reported once on stderr, and the
// job continues without it.
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
  // Called when `log_bytes` more bytes of a host's output were written to both screen and files.
  using OnLeft = std::function<void(uint32_t host, uint64_t log_bytes)>;

  // `plan`: of a job of fixed size. `ranks`: maximum number. `printed`: for a job with a standby,
  // whose two streams go to one pipe.
  Screen(asio::io_context& io, const Plan& plan, uint32_t ranks, const Settings& settings,
         const PrefixTemplate& prefix, OnLeft on_left,
         std::shared_ptr<PrintedOutput> printed = nullptr);

  // Adds a worker's output, shown under its rank by the next Flush. `message_bytes`: its share of
  // the stream's credit. All output between two calls of Flush is of one host.
  void Print(uint32_t host, uint32_t worker, const WorkerOutputView& output, size_t message_bytes);
  void Flush();
  // The user typed these bytes into the terminal.
  void Typed(std::string_view bytes);
  // Stderr is a terminal.
  bool on_terminal() const;
  // The end of a rank's stderr, `last_stderr`, is still visible on the terminal or about to be
  // shown.
  bool Shows(std::string_view last_stderr) const { return shown_.EndWith(last_stderr); }
  // Sets the final plan, before any output of a rank is printed.
  void UsePlan(const Plan& plan);
  // Elastic jobs: the rank is on this host from now on.
  void UseRank(uint32_t rank, const std::string& host, uint32_t local_rank);
  // How much of each worker's output is on the screen and in its file.
  TakeOver printed(uint32_t workers) const;
  // The same for the workers whose output has advanced since the last call.
  std::vector<OutputPrinted> PopPrinted();
  // Some output has arrived and is not printed yet.
  bool HoldsBack() const;
  // Shows a message of hvdrun itself at once.
  void Print(const std::string& sentence);

  // Text on the state of the hosts.
  using HostCounts = std::function<std::string()>;

  // Shows the progress line if stderr is a terminal, until anything else is shown. `hosts` is
  // called until HostsReady(); empty: no hosts to wait for.
  void BeginProgress(HostCounts hosts);
  void HostsChanged();
  void HostsReady();
  void WorkerStarted();
  void RankJoined(uint32_t rank);
  void EndProgress();

  // Hosts were disconnected before all output of their workers had arrived.
  void NoteUnsent() { unsent_ = true; }
  // Shows held output and `last`, then blocks until everything is written, at most `limit` per
  // stream; reports output that is lost, if it can. Only exit_code() may be called afterwards.
  void Finish(const std::string& last, std::chrono::milliseconds limit);

  // The exit code of hvdrun for a successful job: 0 if all output was written; 141, as for a death
  // by SIGPIPE, if the reader has gone; else 1.
  int exit_code() const;

 private:
  // Stdout or stderr of hvdrun.
  struct Outlet {
    const char* name;
    ScreenText text;
    OutputWriter writer;
    OutputReceipt receipt = {};  // for text not yet passed to the writer
    bool failure_said = false;
  };
  enum class Sink { kScreen, kFiles };
  struct Written {
    uint64_t bytes[2] = {0, 0};  // by sink
    uint64_t returned = 0;       // reported to on_left_
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
  // One writer for both streams if they lead to one place, so that output keeps its order.
  OutputWriter& writer_of(const Outlet& outlet);
  ScreenLine& line_of(const Outlet& outlet);

  // Byte counts of one stream of a worker.
  struct Place {
    uint64_t come = 0;                    // received from its agent
    uint64_t on_screen = 0, in_file = 0;  // written by a previous hvdrun
    uint64_t reported = 0;                // returned by PopPrinted
  };
  Place& place_of(uint32_t worker, OutputStream stream);
  uint64_t PrintedOf(uint32_t worker, OutputStream stream) const;
  uint32_t& worker_of(uint32_t rank);
  void UseWorker(uint32_t rank, uint32_t worker);

  asio::io_context& io_;
  OnLeft on_left_;
  const std::shared_ptr<PrintedOutput> printed_;  // may be null
  std::vector<Place> come_;                       // by worker and stream
  std::vector<uint32_t> worker_of_;               // by rank: the worker whose output came last
  uint32_t ranks_;
  std::vector<PrefixPlace> places_;  // by rank
  std::vector<Written> written_;     // by host
  asio::steady_timer held_timer_, progress_timer_;
  std::optional<Progress> progress_;  // while the job starts
  HostCounts hosts_;
  bool unsent_ = false;
  bool one_place_;
  bool on_terminal_;
  bool colours_;       // of hvdrun's final report
  ShownErrors shown_;  // on a terminal
  std::array<ScreenLine, 2> lines_;
  // Last: their threads post to io_.
  std::array<Outlet, 2> outlets_;
  std::unique_ptr<OutputFiles> files_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_SCREEN_H_
