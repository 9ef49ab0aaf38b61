// OutsideStacks: reads the Python stacks of processes from outside, by py-spy if that is installed.
// Does not pause them, unless C frames are requested as well.
//
// One thread, that of the io_context, and the main thread of the process; never blocks.
#ifndef HVD_LAUNCHER_STALL_OUTSIDE_STACKS_H_
#define HVD_LAUNCHER_STALL_OUTSIDE_STACKS_H_

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/process/byte_pump.h"
#include "runtime/base/clock.h"

namespace hvd {

class OutsideStacks {
 public:
  using Texts = std::map<pid_t, std::string>;  // py-spy's output, by process

  explicit OutsideStacks(asio::io_context& io) : io_(io), limit_timer_(io) {}
  ~OutsideStacks() { Forget(); }
  OutsideStacks(const OutsideStacks&) = delete;

  // Less than the time that an agent has to answer an examination.
  static constexpr Duration kShort = std::chrono::milliseconds(600);
  enum class Errors : uint8_t { kDropped, kKept };  // py-spy's stderr
  // Unwinding C frames needs a thread's registers, which the kernel shows only for a stopped one:
  // py-spy stops the process for a few milliseconds. A process that is stopped already yields
  // Python frames only.
  enum class Frames : uint8_t { kPython, kNative };

  // `done` is called from the io_context when all have been read or `limit` has passed; it gets no
  // entry for processes whose user disabled stacks, and none at all if py-spy is not on PATH.
  // Cancels an unanswered question.
  void Ask(const std::vector<pid_t>& pids, std::function<void(const Texts&)> done,
           Duration limit = kShort, Errors errors = Errors::kDropped,
           Frames frames = Frames::kPython);
  static bool IsInstalled();

 private:
  struct Reading {
    pid_t subject = 0, child = 0;
    std::string text;
    std::unique_ptr<BytePump> output;
  };

  bool Begin(pid_t subject, const std::string& path, Errors errors, Frames frames);
  void HandleOutput(Reading* reading, std::string_view bytes);
  void End();
  void Forget();

  asio::io_context& io_;
  asio::steady_timer limit_timer_;
  std::vector<std::unique_ptr<Reading>> readings_;
  std::function<void(const Texts&)> done_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_OUTSIDE_STACKS_H_
