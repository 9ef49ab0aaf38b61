// TopScreen: shows successive texts in place on a terminal, and restores the terminal after q,
// Ctrl-C, SIGTERM or a hang-up, and while stopped by Ctrl-Z.
//
// One at a time, one thread: it handles signals of the process.
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
  // `in`: for keys; `out`: a terminal.
  TopScreen(int in, int out);
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;

  TableSize size() const;
  void Show(std::string_view text);
  enum class Event { kNothing, kSomething, kLeave };
  // Waits until `socket` is readable, a key or a signal arrives, or `limit_ms` have passed
  // (kNothing). kLeave: the user wants to quit.
  Event Wait(int socket, int limit_ms);

 private:
  void Enter();
  void Leave();
  bool ReadKeys();
  bool ReadSignals();

  const int in_, out_;
  sigset_t before_{};
  UniqueFd signals_;
  std::optional<termios>
      lines_;         // the saved terminal settings; none: `in` is not a terminal to control
  bool keys_ = true;  // `in` can be read
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_TOP_SCREEN_H_
