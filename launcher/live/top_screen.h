// TopScreen: a terminal that shows one text after another in place, and is as it was afterwards:
// after q, Ctrl-C, SIGTERM or a hang-up, and while Ctrl-Z has stopped the program.
//
// One at a time, one thread: it takes signals of the process.
#ifndef HVD_LAUNCHER_LIVE_TOP_SCREEN_H_
#define HVD_LAUNCHER_LIVE_TOP_SCREEN_H_

#include <signal.h>
#include <termios.h>

#include <optional>
#include <string_view>

#include "launcher/live/view_table.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class TopScreen {
 public:
  // `in`: where keys come from; `out`: a terminal.
  TopScreen(int in, int out);
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;

  TableSize size() const;
  void Show(std::string_view text);
  enum class Event { kNothing, kSomething, kLeave };
  // Waits until `socket` can be read, a key or a signal comes, or `limit_ms` is over (kNothing).
  // kLeave: the user wants to leave.
  Event Wait(int socket, int limit_ms);

 private:
  void Enter();
  void Leave();
  bool TakeKeys();
  bool TakeSignals();

  const int in_, out_;
  sigset_t before_{};
  UniqueFd signals_;
  std::optional<termios> lines_;  // how the terminal was; none: `in` is no terminal of ours
  bool keys_ = true;              // `in` can be read
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_TOP_SCREEN_H_
