// LauncherRun: mpirun or jsrun as a child of hvdrun. Its end is reported once, with its output.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_LAUNCHER_RUN_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_LAUNCHER_RUN_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channels/command_channel.h"
#include "launcher/process/local_family.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

// How mpirun or jsrun ended, and its error output.
struct LauncherEnd {
  std::string reason;      // "ended with exit code 1"
  std::string words;       // first paragraph of its output; empty: none
  int exit_code = 0;       // as a shell would show it
  bool by_signal = false;  // not sent by hvdrun
};

LauncherEnd ReadLauncherEnd(const CommandEnd& end);

// The first paragraph of its output, on one line and safe to print; later ones only give advice.
std::string FirstParagraph(const std::string& printed);

class LauncherRun final : private ChannelObserver {
 public:
  using OnOver = std::function<void(const LauncherEnd&)>;

  LauncherRun(asio::io_context& io, std::vector<std::string> command,
              std::shared_ptr<LocalFamily> family, OnOver on_over);

  void Start() { channel_.Open(*this); }
  // Ends the launcher; it normally exits after its processes and gets a moment for that. `silent`:
  // kill it at once.
  void End(bool silent);
  bool over() const { return over_; }
  const std::vector<std::string>& command() const { return command_; }

 private:
  void OnStage(ChannelStage) override {}
  void OnBytes(std::string_view) override {}  // ranks send output to their agents
  void OnWritable() override {}
  void OnEnd(const ChannelEnd& end) override;

  const std::vector<std::string> command_;
  OnOver on_over_;
  LauncherEnd end_;
  bool over_ = false;
  CommandChannel channel_;
};

// Creates the launcher of a job whose plan is final. `cpus`: of each host, by number.
using LauncherMaker = std::function<Result<std::unique_ptr<LauncherRun>>(
    asio::io_context& io, const Plan& plan, const std::vector<uint32_t>& cpus,
    LauncherRun::OnOver on_over)>;

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_LAUNCHER_RUN_H_
